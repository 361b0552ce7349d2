"""From a prompt to its blocks: chained keyed hashes over the token ids."""

from kvtrail_schema.identity import BlockId, block_id, keyed_id

from kvtrail_engine.namespaces import Identity
from kvtrail_engine.request import Tokens
from kvtrail_engine.tiers.pool import Block


def blocks_of(key: bytes, identity: Identity, prompt: Tokens, block_tokens: int) -> tuple[Block, ...]:
    """The full blocks of a prompt, in order. Pure; two or three microseconds a block.

    The first one hangs on the namespace's root and names no parent.
    """
    blocks: list[Block] = []
    parent, prefix, content = None, identity.root, b""
    for start in range(0, len(prompt) - block_tokens + 1, block_tokens):
        tokens = prompt[start : start + block_tokens].tobytes()
        content = keyed_id(key, b"content", content, tokens).to_bytes(8, "little")
        made = block_id(key, identity.ns, prefix, tokens)
        blocks.append(_block(identity, made, parent, content, range(start, start + block_tokens)))
        parent = prefix = made
    return tuple(blocks)


def _block(identity: Identity, made: BlockId, parent: BlockId | None, content: bytes, tokens: range) -> Block:
    """One block with everything that it carries."""
    return Block(
        id=made,
        ns=identity.ns,
        parent=parent,
        token_start=tokens.start,
        tokens=len(tokens),
        owner=identity.namespace.tenant,
        model_version=identity.namespace.model_version,
        content=int.from_bytes(content, "little"),
    )
