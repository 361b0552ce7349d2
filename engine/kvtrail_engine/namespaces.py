"""One namespace a tenant, declared the first time that it is seen."""

from kvtrail_schema.identity import Namespace, NamespaceId, namespace_id, namespace_text

from kvtrail_engine.context import Context


class Namespaces:
    """Runs on the engine's thread."""

    def __init__(self, context: Context, key: bytes) -> None:
        self._context = context
        self._key = key
        self._known: dict[str, NamespaceId] = {}

    def of(self, tenant: str) -> NamespaceId:
        """The namespace of a tenant under this model."""
        known = self._known.get(tenant)
        return self._declare(tenant) if known is None else known

    def _declare(self, tenant: str) -> NamespaceId:
        """Make it, tell it, keep it."""
        settings = self._context.settings
        namespace = Namespace(
            tenant=tenant,
            model="kvtrail-tiny",
            model_version=f"seed{settings.seed}",
            tokenizer="ids",
            kv_dtype="fp32",
            block_size=settings.block_tokens,
        )
        ns = namespace_id(self._key, namespace)
        self._known[tenant] = ns
        self._context.emit.namespace_declared(ns, namespace_text(self._key, namespace))
        return ns
