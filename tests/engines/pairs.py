"""Runs in the engines' environment: throughput with and without our connector, in alternating pairs. `pairs.py SPEC ANSWER`.

Two engines, each in a process of its own (within one, vLLM's connectors are shared), one of which works at a time; the order
within a pair changes from pair to pair.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Run the pairs."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    engines = {name: engine(spec, config) for name, config in spec["connectors"].items()}
    names = list(engines)
    for name in names:
        seconds(engines[name], spec, 0)
    pairs = []
    for number in range(spec["pairs"]):
        order = names if number % 2 else names[::-1]
        pairs.append({name: seconds(engines[name], spec, number + 1) for name in order})
    Path(sys.argv[2]).write_text(json.dumps({"pairs": pairs}), encoding="utf-8")
    for llm in engines.values():
        llm.llm_engine.engine_core.shutdown()


def engine(spec: dict[str, Any], connector: dict[str, Any] | None) -> Any:
    """One engine; without a connector where none is given."""
    import vllm  # noqa: PLC0415 - ten seconds, and only here
    from vllm.config import KVTransferConfig  # noqa: PLC0415 - as above

    return vllm.LLM(
        model=spec["model"],
        skip_tokenizer_init=True,
        dtype="bfloat16",
        block_size=32,
        max_model_len=1024,
        enforce_eager=True,
        max_num_seqs=16,
        num_gpu_blocks_override=1024,
        kv_transfer_config=KVTransferConfig(**connector) if connector else None,
    )


def seconds(llm: Any, spec: dict[str, Any], number: int) -> float:
    """One round of requests, none of which was there before."""
    import vllm  # noqa: PLC0415 - loaded already

    sampling = vllm.SamplingParams(max_tokens=spec["tokens"], ignore_eos=True, temperature=0.0, detokenize=False)
    asked = [{"prompt_token_ids": [number % 1024, *prompt[1:]]} for prompt in spec["prompts"]]
    begin = time.perf_counter()
    llm.generate(asked, sampling, use_tqdm=False)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
