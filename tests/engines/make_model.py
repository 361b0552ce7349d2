"""Runs in the engines' environment: writes a tiny Llama with random weights. `make_model.py SPEC ANSWER`."""

import json
import sys
from pathlib import Path


def main() -> None:
    """Write the model."""
    import torch  # noqa: PLC0415 - seconds, and only here
    from transformers import LlamaConfig, LlamaForCausalLM  # noqa: PLC0415 - as above

    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(spec["model"])
    Path(sys.argv[2]).write_text("{}", encoding="utf-8")


if __name__ == "__main__":
    main()
