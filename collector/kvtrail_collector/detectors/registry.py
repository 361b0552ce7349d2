"""All detectors of population verdicts, as data. To add one: write its file, name it here, give it a test that fires."""

from typing import Final

from kvtrail_collector.detectors import (
    hits_moved,
    lookups_block,
    mix_queues,
    prefetch_came_late,
    prefetch_floods,
    reads_fail,
    sched_queue,
    steps_recompute,
    tier_queue,
    tier_slow,
)
from kvtrail_collector.verdicts_case import Detector

DETECTORS: Final[tuple[Detector, ...]] = (
    tier_slow.DETECTOR,
    tier_queue.DETECTOR,
    sched_queue.DETECTOR,
    prefetch_floods.DETECTOR,
    prefetch_came_late.DETECTOR,
    reads_fail.DETECTOR,
    steps_recompute.DETECTOR,
    lookups_block.DETECTOR,
    hits_moved.DETECTOR,
    mix_queues.DETECTOR,
)
