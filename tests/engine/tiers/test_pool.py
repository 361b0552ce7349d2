"""The slots of a tier, under any sequence of takes, uses and evictions."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kvtrail_engine.tiers.pool import Block, Copy, CopyState, TierPool
from kvtrail_schema.enums import Tier
from kvtrail_schema.identity import BlockId, NamespaceId, Slot

SLOTS = 6


class PoolMachine(RuleBasedStateMachine):
    """Drives a pool beside the obvious model: a list of unused copies in the order in which they were last used."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = TierPool(Tier.HOST, SLOTS)
        self.copies: list[Copy] = []
        self.unused: list[Copy] = []
        self.bare: list[Slot] = []
        self.clock_ns = 0

    def tick(self) -> int:
        """A later moment."""
        self.clock_ns += 1
        return self.clock_ns

    @rule(is_ready=st.booleans())
    def insert(self, is_ready: bool) -> None:
        """Take a slot and put a new block there."""
        slot = self.pool.take()
        if slot is None:
            assert len(self.copies) + len(self.bare) == SLOTS
            return
        block = Block(BlockId(self.tick()), NamespaceId(1), None, 0, 32)
        copy = Copy(block, Tier.HOST, slot, CopyState.READY if is_ready else CopyState.LOADING, self.clock_ns)
        self.pool.insert(copy)
        self.copies.append(copy)
        if is_ready:
            self.unused.append(copy)

    @rule()
    def take_bare(self) -> None:
        """Take a slot for something that is no block."""
        slot = self.pool.take()
        if slot is not None:
            self.bare.append(slot)

    @precondition(lambda self: self.bare)
    @rule()
    def give_back(self) -> None:
        """Return such a slot."""
        self.pool.give_back(self.bare.pop())

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def acquire(self, data: st.DataObject) -> None:
        """Use a copy."""
        copy = data.draw(st.sampled_from(self.copies))
        before = copy.refs

        assert self.pool.acquire(copy) == before + 1
        if copy in self.unused:
            self.unused.remove(copy)

    @precondition(lambda self: any(copy.refs for copy in self.copies))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """Cease to use a copy: the last one to do so makes it the most recently used."""
        copy = data.draw(st.sampled_from([copy for copy in self.copies if copy.refs]))
        if self.pool.release(copy, self.tick()) == 0 and copy.state is CopyState.READY:
            self.unused.append(copy)

    @precondition(lambda self: any(copy.state is CopyState.LOADING for copy in self.copies))
    @rule(data=st.data())
    def ready(self, data: st.DataObject) -> None:
        """A load ends."""
        copy = data.draw(st.sampled_from([copy for copy in self.copies if copy.state is CopyState.LOADING]))
        self.pool.ready(copy, self.tick())
        if copy.refs == 0:
            self.unused.append(copy)

    @rule()
    def evict(self) -> None:
        """The victim is the copy that has been unused for longest, and nothing that is in use or loads."""
        victim = self.pool.victim()

        assert victim is (self.unused[0] if self.unused else None)
        if victim is not None:
            self.pool.remove(victim)
            self.unused.remove(victim)
            self.copies.remove(victim)

    @invariant()
    def every_slot_is_somewhere_once(self) -> None:
        """Free, bare and held slots are all slots, each once."""
        taken = [copy.slot for copy in self.copies] + self.bare
        statistics = self.pool.statistics()

        assert len(set(taken)) == len(taken)
        assert (SLOTS - len(taken), len(self.copies), len(self.unused), 0) == statistics[1:]
        assert self.pool.available == statistics.free + statistics.evictable
        assert self.unused == self.pool.victims(SLOTS)


TestPool = PoolMachine.TestCase
