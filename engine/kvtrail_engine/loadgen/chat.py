"""Chats for when there is no trace: several turns each, system prompts that many share, arrivals of a Poisson process.

At each arrival a conversation whose user has thought long enough goes on; where there is none, or one time in a while, a new
one begins. So the rate is the same from the first second to the last, and what varies is what a cache can know.
"""

import heapq
from dataclasses import dataclass, field

import numpy as np

from kvtrail_engine.loadgen.arrivals import Arrival
from kvtrail_engine.loadgen.tokens import TokenSource
from kvtrail_engine.request import RequestSpec, Tokens


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """The load, all of it a function of these and nothing else. Lengths are drawn evenly between their two ends."""

    seed: int = 0
    duration_s: float = 60.0
    rate_per_s: float = 10.0
    tenants: tuple[str, ...] = ("chat-a", "chat-b")
    system_prompts: int = 4
    system_tokens: int = 64
    first_tokens: tuple[int, int] = (48, 160)
    turn_tokens: tuple[int, int] = (32, 96)
    output_tokens: tuple[int, int] = (2, 6)
    max_prompt_tokens: int = 512
    max_turns: int = 8
    new_share: float = 0.25
    """Of the arrivals, so many begin a conversation even where one could go on."""
    think_s: tuple[float, ...] = (1.0, 6.0)
    """Mean times of thinking, exponential; each turn draws one of them."""
    vocabulary: int = 1024


@dataclass(slots=True)
class _Chat:
    """One conversation: its tokens so far."""

    number: int
    tenant: str
    prompt: Tokens
    turn: int = 0


@dataclass(order=True, slots=True)
class _Thinking:
    """A conversation that goes on at `until_s` at the earliest."""

    until_s: float
    chat: _Chat = field(compare=False)


class ChatLoad:
    """Draws the arrivals in order; one object, one load."""

    def __init__(self, settings: ChatSettings) -> None:
        self._settings = settings
        self._random = np.random.default_rng(settings.seed)
        self._system = TokenSource(settings.seed, settings.vocabulary, settings.system_tokens)
        self._thinking: list[_Thinking] = []
        self._chats = 0

    def arrivals(self) -> list[Arrival]:
        """The whole load."""
        settings, now_s = self._settings, 0.0
        arrivals: list[Arrival] = []
        while (now_s := now_s + self._random.exponential(1 / settings.rate_per_s)) < settings.duration_s:
            chat = self._next_chat(now_s)
            arrivals.append(Arrival(int(now_s * 1e9), self._ask(chat)))
            self._think(chat, now_s)
        return arrivals

    def _between(self, ends: tuple[int, int]) -> int:
        """A whole number between two ends, both included."""
        return int(self._random.integers(ends[0], ends[1] + 1))

    def _next_chat(self, now_s: float) -> _Chat:
        """The one that has waited longest, or a new one."""
        is_due = bool(self._thinking) and self._thinking[0].until_s <= now_s
        if is_due and self._random.random() >= self._settings.new_share:
            chat = heapq.heappop(self._thinking).chat
            chat.prompt = np.concatenate([chat.prompt, self._draw(self._between(self._settings.turn_tokens))])
            return chat
        return self._begin()

    def _begin(self) -> _Chat:
        """A new conversation on one of the tenant's system prompts."""
        settings, number = self._settings, self._chats
        self._chats += 1
        place = number % len(settings.tenants)
        system = self._system.stretch(place * settings.system_prompts + self._between((0, settings.system_prompts - 1)))
        prompt = np.concatenate([system, self._draw(self._between(settings.first_tokens))])
        return _Chat(number, settings.tenants[place], prompt)

    def _draw(self, tokens: int) -> Tokens:
        """What somebody says."""
        return self._random.integers(0, self._settings.vocabulary, tokens, dtype=np.int64)

    def _ask(self, chat: _Chat) -> RequestSpec:
        """The request of a conversation's next turn."""
        name = f"chat-{chat.number}-{chat.turn}"
        chat.turn += 1
        return RequestSpec(name, chat.prompt, self._between(self._settings.output_tokens), chat.tenant)

    def _think(self, chat: _Chat, now_s: float) -> None:
        """Let the user think, unless the conversation is long enough."""
        settings = self._settings
        most = settings.max_prompt_tokens - settings.turn_tokens[1]
        if chat.turn < settings.max_turns and len(chat.prompt) <= most:
            mean_s = settings.think_s[int(self._random.integers(0, len(settings.think_s)))]
            heapq.heappush(self._thinking, _Thinking(now_s + self._random.exponential(mean_s), chat))


def chat_arrivals(settings: ChatSettings) -> list[Arrival]:
    """The arrivals of these settings, in order of time."""
    return ChatLoad(settings).arrivals()
