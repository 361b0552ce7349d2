"""vLLM's names as ids of ours: blocks, requests and tenants, each a hash under the fleet's key (EVENTS §6)."""

from typing import Any, Final

from kvtrail_schema.absent import NO_TRACE
from kvtrail_schema.identity import BlockId, NamespaceId, RequestId, keyed_id, namespace_id, namespace_text

from kvtrail_agent.importers.hashes import block_of
from kvtrail_agent.importers.vllm_tenants import vllm_namespace

_MOST_KNOWN: Final = 1 << 16
_GROUP_BYTES: Final = 4
_TRACE_DIGITS: Final = 32


class Names:
    """Ids under one key; used by one thread. A block that was named before costs a look-up, a new one a microsecond."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._blocks: dict[bytes, BlockId] = {}
        self._namespaces: dict[tuple[str | None, str | None], tuple[NamespaceId, str]] = {}

    def block(self, block_hash: bytes) -> BlockId:
        """The id of a block; the same that a relay gives it."""
        known = self._blocks.get(block_hash)
        if known is None:
            if len(self._blocks) >= _MOST_KNOWN:
                self._blocks.clear()
            known = self._blocks[block_hash] = block_of(self._key, bytes(block_hash))
        return known

    def cached_block(self, hash_with_group: bytes) -> BlockId:
        """The id of a block by the key of vLLM's own cache, which has the number of the cache group behind the hash."""
        return self.block(bytes(hash_with_group)[:-_GROUP_BYTES])

    def request(self, request_id: str) -> RequestId:
        """The id of a request; the same in every process of an engine."""
        return RequestId(keyed_id(self._key, b"request", request_id.encode()))

    def namespace(self, request: Any) -> tuple[NamespaceId, str | None]:
        """The namespace of a request by its cache salt and its LoRA adapter, and its declaration the first time."""
        lora = request.lora_request
        member = (request.cache_salt, lora.name if lora is not None else None)
        known = self._namespaces.get(member)
        if known is not None:
            return known[0], None
        namespace = vllm_namespace(*member)
        if len(self._namespaces) >= _MOST_KNOWN:
            self._namespaces.clear()
        ns, text = namespace_id(self._key, namespace), namespace_text(self._key, namespace)
        self._namespaces[member] = (ns, text)
        return ns, text


def trace_of(request: Any) -> str:
    """The W3C trace id that a request came with; absent where it has none (`traceparent`: version-trace-parent-flags)."""
    headers = getattr(request, "trace_headers", None) or {}
    parts = str(headers.get("traceparent", "")).split("-")
    good = len(parts) > 1 and len(parts[1]) == _TRACE_DIGITS and all(digit in "0123456789abcdef" for digit in parts[1])
    return parts[1] if good else NO_TRACE
