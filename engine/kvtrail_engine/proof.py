"""The proof that a restored block is the right block: equal logits if it is, other logits if it is not."""

import time
from dataclasses import dataclass, replace
from functools import partial

import torch
from kvtrail_schema.enums import Tier

from kvtrail_engine.engine import Engine
from kvtrail_engine.errors import EngineError
from kvtrail_engine.request import RequestResult, RequestSpec

SETTLE_S = 10.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What came out for one prompt and one tier."""

    tier: Tier
    restored_blocks: int
    is_restored_equal: bool
    """The logits over the restored prefix are those over the computed one, bit for bit."""
    is_swapped_equal: bool
    """The logits after two blocks were exchanged on purpose are still the same: then the proof proves nothing."""

    @property
    def holds(self) -> bool:
        """Blocks were restored, they were the right ones, and wrong ones would have shown."""
        return self.restored_blocks > 0 and self.is_restored_equal and not self.is_swapped_equal


def prove(engine: Engine, spec: RequestSpec, tier: Tier) -> Proof:
    """Compute a prompt, send its blocks down to `tier`, restore them, compare; then swap two of them and compare again.

    Needs an engine that is otherwise idle, a prompt of at least four blocks, and a policy that restores. Blocks for
    a few steps. Leaves the gpu cleared of idle copies.
    """
    spec = replace(spec, keep_logits=True)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    computed = engine.submit(spec).result(SETTLE_S)
    settle(engine)
    sink(engine, tier)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    restored = engine.submit(spec).result(SETTLE_S)
    settle(engine)
    first, second = engine.blocks_of(spec)[:2]
    engine.ask(lambda: engine.maintenance.swap(Tier.GPU, first.id, second.id))
    swapped = engine.submit(spec).result(SETTLE_S)
    engine.ask(lambda: engine.maintenance.clear(Tier.GPU))
    return Proof(tier, restored.restored.get(tier, 0), _is_equal(computed, restored), _is_equal(computed, swapped))


def sink(engine: Engine, tier: Tier) -> None:
    """Move every idle block below the gpu down to `tier`, tier by tier. Blocks until they are there."""
    for above in [known for known in engine.context.pools if Tier.GPU < known < tier]:
        engine.ask(partial(engine.maintenance.demote_all, above))
        settle(engine)


def settle(engine: Engine) -> None:
    """Return when no op is on its way.

    Raises:
        EngineError: some still are after ten seconds.
    """
    deadline_s = time.monotonic() + SETTLE_S
    while engine.ask(lambda: engine.transfers.in_flight):
        if time.monotonic() > deadline_s:
            message = f"ops are still on their way after {SETTLE_S} s"
            raise EngineError(message)
        time.sleep(0.002)


def _is_equal(first: RequestResult, second: RequestResult) -> bool:
    """Whether the logits of two first tokens are the same bits."""
    if first.first_logits is None or second.first_logits is None:
        return False
    return torch.equal(torch.from_numpy(first.first_logits), torch.from_numpy(second.first_logits))
