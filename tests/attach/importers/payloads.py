"""Payloads in the documented shapes of vLLM and SGLang: built by hand, small, one of each generation."""

from typing import Final

import msgspec

KEY: Final = b"a fleet key of the tests, 32 byte"
TS: Final = 1_795_975_516.25
TS_NS: Final = 1_795_975_516_250_000_000


def payload(*events: object, ts: object = TS, rank: object = 0) -> bytes:
    """A batch as it travels."""
    return msgspec.msgpack.encode([ts, list(events), rank])


def stored(*hashes: object, parent: object = None, tokens: int = 4, **fields: object) -> dict[str, object]:
    """A `BlockStored` as a map, blocks of `tokens` tokens each."""
    told: dict[str, object] = {
        "type": "BlockStored",
        "block_hashes": list(hashes),
        "parent_block_hash": parent,
        "token_ids": list(range(tokens * len(hashes))),
        "block_size": tokens,
        "lora_id": None,
        "medium": "GPU",
    }
    return told | fields


def removed(*hashes: object, **fields: object) -> dict[str, object]:
    """A `BlockRemoved` as a map."""
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": "GPU"} | fields


GENERATIONS: Final = {
    "vllm 0.10, no medium": ["BlockStored", [1, 2], None, [0] * 8, 4, None],
    "vllm 0.12": ["BlockStored", [1, 2], None, [0] * 8, 4, None, "GPU"],
    "vllm 0.16, lora name": ["BlockStored", [1, 2], None, [0] * 8, 4, None, "GPU", None],
    "vllm 0.19, extra keys": ["BlockStored", [1, 2], None, [0] * 8, 4, None, "GPU", None, [None, None]],
    "vllm 0.22, last of the lists": [
        "BlockStored", [1, 2], None, [0] * 8, 4, None, "GPU", None, None, 0, "full_attention", None,
    ],
    "vllm 0.24, first of the maps": stored(1, 2),
    "vllm 0.32": stored(1, 2, lora_name=None, locality="LOCAL", ownership="fs", session_id="s", group_idx=0),
    "vllm 0.33": stored(1, 2, lookahead_token_ids=[[1, 2]]),
    "digests": stored(bytes(31) + b"\1", b"\7" * 24 + (2).to_bytes(8, "big")),
    "signed": stored(1, 2 - 2**64 + 2**64),
}  # fmt: skip
"""One and the same store of two blocks, as each generation writes it."""
