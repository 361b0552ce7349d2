"""`kill -9` at any moment: the next start finds every torn record, serves none, and answers as if nothing had happened."""

import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest
from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import ChecksumError, RecordMissingError
from kvtrail_engine.settings import RestorePolicy
from kvtrail_engine.testing import CollectingEmitter
from kvtrail_engine.tiers.envelope import check_whole
from kvtrail_engine.tiers.geometry import Geometry
from kvtrail_engine.tiers.segment_file import segment_path
from kvtrail_schema.enums import Tier
from kvtrail_schema.events import OrphanFound, SwapInFailed
from kvtrail_schema.identity import Slot
from kvtrail_schema.lifecycle import fold
from kvtrail_schema.reasons import OrphanReason

from tests.engine.engines import BLOCK, ask, tiny
from tests.engine.victims import PROMPT_BLOCKS, PROMPTS, serve_for_ever, settings

ROUNDS = 200 if os.environ.get("KVTRAIL_LONG") else 3


class Files:
    """The segments of an engine that is gone, as this test reads and harms them."""

    def __init__(self, data_dir: Path, geometry: Geometry) -> None:
        self._path = segment_path(data_dir / "nvme", 0)
        self._geometry = geometry

    def judge(self) -> tuple[list[Slot], list[Slot]]:
        """The slots that hold whole records, and those that hold torn ones."""
        content = memoryview(self._path.read_bytes())
        align, size = self._geometry.align_bytes, self._geometry.record_bytes
        whole: list[Slot] = []
        torn: list[Slot] = []
        for slot in map(Slot, range(self._geometry.segment_slots)):
            offset = self._geometry.offset_of(slot)
            record = content[offset : offset + size]
            if len(record) < size:
                torn += [slot] if len(record) else []
                break
            try:
                check_whole(record[:align], record[align:-align], record[-align:])
                whole.append(slot)
            except ChecksumError:
                torn.append(slot)
            except RecordMissingError:
                continue
        return whole, torn

    def tear(self, slots: list[Slot], random: np.random.Generator) -> None:
        """Let the writes of these records have ended early: from somewhere on, there is what was there before them."""
        align, size = self._geometry.align_bytes, self._geometry.record_bytes
        with self._path.open("r+b") as stream:
            for slot in slots:
                cut = int(random.integers(align, size - align))
                stream.seek(self._geometry.offset_of(slot) + cut)
                stream.write(random.bytes(size - cut))


def kill_one(data_dir: Path, seed: int, wait_s: float) -> None:
    """Start an engine in its own process, and kill it a while after it has begun to use nvme."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.engine.victims"])
    hears, says = context.Pipe(duplex=False)
    victim = context.Process(target=serve_for_ever, args=(data_dir, seed, says))
    victim.start()
    says.close()
    assert hears.poll(60), "the engine did not begin"
    hears.recv()  # fails if it ended by itself
    time.sleep(wait_s)
    victim.kill()
    victim.join(30)
    hears.close()
    victim.close()


@pytest.mark.timeout(3600 if ROUNDS > 3 else 120)
def test_killed_engines_leave_nothing_that_lies(data_dir: Path, tmp_path: Path) -> None:
    """Whatever a killed engine, or a crash of its host, tore: told by name at the next start, never served, answers equal."""
    random = np.random.default_rng(7)
    specs = [ask(number, PROMPT_BLOCKS * BLOCK, 1) for number in range(PROMPTS)]
    with Engine(tiny(tmp_path / "other", restore_policy=RestorePolicy.RECOMPUTE)) as engine:
        expected = [engine.submit(spec).result(30).output for spec in specs]
        geometry = engine.nvme.store.geometry
    files, restored = Files(data_dir, geometry), 0
    for number in range(ROUNDS):
        kill_one(data_dir, number, float(random.uniform(0, 0.3)))
        whole, _ = files.judge()
        files.tear([Slot(int(slot)) for slot in random.choice(np.array(whole), min(4, len(whole)), replace=False)], random)
        whole, torn = files.judge()
        recorded = CollectingEmitter()
        with Engine(settings(data_dir), [recorded.as_emitter()]) as engine:
            recovery = engine.statistics().nvme_files.recovery
            answers = [engine.submit(spec).result(30) for spec in specs]
        found = [event for event in recorded.of(OrphanFound) if event.reason is OrphanReason.TORN]
        restored += sum(answer.restored.get(Tier.NVME, 0) for answer in answers)

        assert len(torn) == recovery.torn == len(found), f"round {number}"
        assert len(whole) == recovery.recovered + recovery.unindexed, f"round {number}"
        assert expected == [answer.output for answer in answers], f"round {number}"
        assert [] == recorded.of(SwapInFailed), f"round {number}"
        assert () == fold(recorded.events).violations, f"round {number}"
    assert restored > 0
