"""The namespaces of an engine: completed with what it is itself, and declared the first time that they are seen."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from kvtrail_schema.identity import BlockId, Namespace, NamespaceId, namespace_id, namespace_text
from kvtrail_schema.reasons import MissReason

from kvtrail_engine.context import Context
from kvtrail_engine.identity.journal import Journal
from kvtrail_engine.identity.mismatch import nearest
from kvtrail_engine.identity.selector import Members, hashed_members
from kvtrail_engine.request import RequestSpec
from kvtrail_engine.settings import EngineSettings
from kvtrail_engine.tiers.block import Block

MODEL = "kvtrail-tiny"
_NO_TOKENS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose blocks a prompt's are: the namespace, its id, and what the first of them hangs on."""

    ns: NamespaceId
    namespace: Namespace
    root: BlockId | None


def namespace_of(settings: EngineSettings, spec: RequestSpec) -> Namespace:
    """The whole tuple of a request: what it says, and for the rest what this engine is. Pure."""
    given = Namespace() if spec.namespace is None else spec.namespace
    return replace(
        given,
        tenant=given.tenant or spec.tenant,
        model=given.model or MODEL,
        model_version=given.model_version or f"seed{settings.seed}",
        tokenizer=given.tokenizer or "ids",
        kv_dtype="fp32",
        block_size=settings.block_tokens,
    )


class Namespaces:
    """Runs on the engine's thread, but for `remember`. Looked up by the whole tuple, never by a name or by an id alone."""

    def __init__(self, context: Context, key: bytes, journal: Journal) -> None:
        self._context = context
        self._key = key
        self._journal = journal
        self._known: dict[Namespace, Identity] = {}
        self._by_id: dict[NamespaceId, Namespace] = {}
        self._told: set[NamespaceId] = set()

    def of(self, tenant: str) -> NamespaceId:
        """The plain namespace of a tenant under this model."""
        return self.identity(namespace_of(self._context.settings, RequestSpec("", _NO_TOKENS, 0, tenant))).ns

    def identity(self, namespace: Namespace) -> Identity:
        """The identity of a namespace; told as an event the first time."""
        known = self._known.get(namespace)
        return self._declare(namespace) if known is None else known

    def remember(self, spec: RequestSpec) -> None:
        """Put a request's namespace down, if it is new. May block for the disk: for the sender's thread, not the engine's."""
        namespace = namespace_of(self._context.settings, spec)
        if namespace not in self._known:
            self._journal.remember(namespace_id(self._key, namespace), hashed_members(self._key, namespace))

    def get(self, ns: NamespaceId) -> Namespace | None:
        """The tuple behind an id, if it was seen in this life."""
        return self._by_id.get(ns)

    def why_foreign(self, block: Block) -> MissReason | None:
        """Why what others hold of the same content may not be used for a block; None where nobody holds any."""
        asked = self._by_id.get(block.ns)
        holders = map(self._by_id.get, self._context.holdings.namespaces(block.content))
        return None if asked is None else nearest(asked, [each for each in holders if each is not None])

    def invalidated(self, selector: Members) -> set[NamespaceId]:
        """An invalidation was put down: the namespaces that it means, whose blocks have other ids from here on."""
        for namespace, identity in self._known.items():
            self._known[namespace] = replace(identity, root=self._root(namespace))
        return self._journal.selected(selector)

    def _declare(self, namespace: Namespace) -> Identity:
        """Make it, tell it, keep it."""
        ns = namespace_id(self._key, namespace)
        identity = Identity(ns, namespace, self._root(namespace))
        self._known[namespace] = identity
        self._by_id[ns] = namespace
        if ns not in self._told:
            self._told.add(ns)
            self._context.emit.namespace_declared(ns, namespace_text(self._key, namespace))
        return identity

    def declare_stored(self, stored: Iterable[NamespaceId]) -> None:
        """Tell the namespaces of what an earlier life left; runs before the engine's thread does."""
        for ns in dict.fromkeys(stored):
            members = self._journal.members(ns)
            if members is not None and ns not in self._told:
                self._told.add(ns)
                self._context.emit.namespace_declared(ns, json.dumps(members, sort_keys=True, separators=(",", ":")))

    def _root(self, namespace: Namespace) -> BlockId | None:
        """What the first blocks of a namespace hang on."""
        return self._journal.root(hashed_members(self._key, namespace))
