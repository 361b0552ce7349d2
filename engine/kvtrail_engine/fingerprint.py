"""What the bits of a block depend on beside its tokens: a record of another fingerprint is of no use."""

import json
from dataclasses import asdict

import torch
from kvtrail_schema.identity import keyed_id

from kvtrail_engine.settings import EngineSettings


def fingerprint_of(key: bytes, settings: EngineSettings, device: torch.device) -> int:
    """A keyed hash of the model's shape, its weights' seed, the block size, the device and the library that computes."""
    facts = {
        "model": asdict(settings.model),
        "seed": settings.seed,
        "block_tokens": settings.block_tokens,
        "device": device.type,
        "torch": torch.__version__,
    }
    return keyed_id(key, b"fingerprint", json.dumps(facts, sort_keys=True).encode())
