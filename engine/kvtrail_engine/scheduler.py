"""Who waits for what, and what the next step computes: first come, first served, within a budget of tokens."""

from bisect import insort
from collections import deque
from dataclasses import dataclass

from kvtrail_schema.emitter import Emitter
from kvtrail_schema.reasons import WaitReason

from kvtrail_engine.sequence import Phase, Sequence
from kvtrail_engine.settings import StepSettings


@dataclass(frozen=True, slots=True)
class Chunk:
    """One block of one prompt, to be computed in a step."""

    sequence: Sequence
    index: int

    @property
    def tokens(self) -> int:
        """How many tokens it has."""
        start, stop = self.sequence.chunk(self.index)
        return stop - start


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What one step computes."""

    chunks: tuple[Chunk, ...]
    decodes: tuple[Sequence, ...]

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens of the step."""
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def sequences(self) -> list[Sequence]:
        """Everybody in the step, once, in order."""
        return list(dict.fromkeys([*(chunk.sequence for chunk in self.chunks), *self.decodes]))


class Scheduler:
    """Runs on the engine's thread. Holds every sequence that has not ended, by its phase."""

    def __init__(self, settings: StepSettings, emit: Emitter) -> None:
        self._settings = settings
        self._emit = emit
        self.waiting: deque[Sequence] = deque()
        self.loading: list[Sequence] = []
        self.prefill: list[Sequence] = []
        self.decoding: list[Sequence] = []

    @property
    def active(self) -> int:
        """Sequences that hold a place."""
        return len(self.loading) + len(self.prefill) + len(self.decoding)

    @property
    def has_place(self) -> bool:
        """Whether another sequence may be prepared."""
        return self.active < self._settings.max_sequences

    @property
    def is_idle(self) -> bool:
        """Whether no request is left."""
        return self.active == 0 and not self.waiting

    def ahead_tokens(self) -> int:
        """Prompt tokens that are to be computed before a newcomer's."""
        return sum(sequence.todo_tokens() for sequence in self.prefill)

    def active_tokens(self) -> int:
        """Prompt tokens of the sequences that hold a place."""
        return sum(sequence.prompt_tokens for place in (self.loading, self.prefill, self.decoding) for sequence in place)

    def enter(self, sequence: Sequence) -> None:
        """Put a prepared sequence into the order of its phase; prompts stand by arrival."""
        if sequence.phase is Phase.LOADING:
            self.loading.append(sequence)
        elif sequence.phase is Phase.PREFILL:
            insort(self.prefill, sequence, key=lambda other: other.handle.req)
        else:
            self.decoding.append(sequence)

    def leave(self, sequence: Sequence) -> None:
        """Take a sequence out of wherever it stands."""
        for place in (self.loading, self.prefill, self.decoding, self.waiting):
            if sequence in place:
                place.remove(sequence)

    def wait(self, sequence: Sequence, reason: WaitReason, t_ns: int) -> None:
        """Tell why a sequence is not running, if that has changed; one that was admitted tells no more."""
        if sequence.wait_reason is not reason and not sequence.is_admitted:
            sequence.wait_reason = reason
            self._emit.request_waiting(sequence.handle.req, reason, t_ns)

    def plan(self) -> StepPlan | None:
        """The next step: a token for each that decodes, then prompts in order of arrival while the budget lasts.

        A long prompt may take all that is left, unless there is a most for one prompt. None: nothing can be computed.
        """
        budget = self._settings.budget_tokens
        most = self._settings.most_of_a_prompt()
        decodes = tuple(self.decoding[:budget])
        left = budget - len(decodes)
        chunks: list[Chunk] = []
        for sequence in self.prefill:
            own = most
            for index in sequence.todo:
                chunk = Chunk(sequence, index)
                if chunk.tokens > left:
                    return StepPlan(tuple(chunks), decodes)
                if chunk.tokens > own:
                    break
                chunks.append(chunk)
                left -= chunk.tokens
                own -= chunk.tokens
        return StepPlan(tuple(chunks), decodes) if chunks or decodes else None
