"""Charges in columns are what each of them is by itself."""

import numpy as np
from kvtrail_collector.blame_accounts import Blame
from kvtrail_collector.facts_build import recording_of_table
from kvtrail_collector.facts_ops import op_structs

from tests.collector.attribution.synthetic import Run


def test_charges_are_the_same_one_by_one_and_together(slow_run: Run) -> None:
    """What was waited is charged, largest first; sums by account, and the worst, are those of the charges one by one."""
    recording = recording_of_table(slow_run.table())
    places = np.arange(0, len(recording.ops.op), 7)
    blame = Blame(recording)
    charged = blame.blamed(op_structs(recording.ops, places))
    one_by_one = list(charged)
    waited_ns = int((recording.ops.started_ns - recording.ops.queued_ns)[places].sum())

    assert (
        waited_ns == charged.total_ns == sum(one.ns for one in one_by_one) == sum(row.waited_ns for row in blame.rows(charged))
    )
    assert sorted((one.ns for one in one_by_one), reverse=True) == [one.ns for one in one_by_one]
    assert one_by_one[2:5] == charged[2:5]
    assert [one.op for one in one_by_one if one.op is not None][:3] == charged.worst(3)
    assert [] == charged.worst(3, only_prefetches=True)
