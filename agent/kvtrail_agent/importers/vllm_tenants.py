"""Whose a block of vLLM or SGLang is: the cache salt and the LoRA adapter, which KV may not cross, as a namespace of ours."""

from kvtrail_schema.identity import Namespace

from kvtrail_agent.errors import ForeignInvalid
from kvtrail_agent.importers.hashes import shown


def vllm_namespace(cache_salt: str | None, lora_name: str | None) -> Namespace:
    """The namespace of a request: its cache salt is its tenant. A connector inside the engine says the same."""
    return Namespace(tenant=cache_salt or "", lora=lora_name or "")


def salt_in(fields: dict[str, object], lora: str | None) -> str | None:
    """The cache salt that a stored event tells: SGLang in a field, vLLM among the extra keys of the first block of a prompt.

    vLLM's keys have no names: the adapter comes first, then pairs for images, then the salt; so the first text that is not the
    adapter's name is the salt.

    Raises:
        ForeignInvalid: the extra keys have a form that is known of no version.
    """
    salt = fields.get("cache_salt")
    if isinstance(salt, str):
        return salt or None
    keys = fields.get("extra_keys")
    if keys is None:
        return None
    if not isinstance(keys, list):
        raise ForeignInvalid(f"extra_keys is {shown(keys)}")
    first = keys[0] if keys else None
    texts = [key for key in first if isinstance(key, str)] if isinstance(first, list) else []
    if texts and texts[0] == lora:
        texts = texts[1:]
    return texts[0] if texts else None


def lora_in(fields: dict[str, object]) -> str | None:
    """The adapter that a stored event tells: by name, or, from before vLLM 0.16, by number."""
    name, number = fields.get("lora_name"), fields.get("lora_id")
    if isinstance(name, str) and name:
        return name
    return f"id {number}" if isinstance(number, int) and not isinstance(number, bool) else None
