"""Runs in the engines' environment: vLLM as a library, some rounds of prompts. `offline.py SPEC ANSWER`.

The scheduler is in this process, so that what vLLM itself holds can be read at the end.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"


def main() -> None:
    """Run what the spec says."""
    import vllm  # noqa: PLC0415 - ten seconds, and only here
    from vllm.config import KVEventsConfig, KVTransferConfig  # noqa: PLC0415 - as above

    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    events = spec.get("events")
    llm = vllm.LLM(
        model=spec["model"],
        skip_tokenizer_init=True,
        dtype="bfloat16",
        block_size=32,
        max_model_len=1024,
        enforce_eager=True,
        max_num_seqs=4,
        num_gpu_blocks_override=spec["blocks"],
        kv_transfer_config=KVTransferConfig(**spec["connector"]),
        kv_events_config=KVEventsConfig(enable_kv_cache_events=True, publisher="zmq", topic="kv", **events) if events else None,
    )
    sampling = vllm.SamplingParams(max_tokens=8, ignore_eos=True, temperature=0.0, detokenize=False)
    tokens, seconds = [], []
    for number in range(spec["rounds"]):
        begin = time.monotonic()
        asked = [{"prompt_token_ids": prompt, **spec.get("fields", {})} for prompt in spec["prompts"]]
        answers = llm.generate(asked, sampling, use_tqdm=False)
        seconds.append(time.monotonic() - begin)
        tokens.append([list(answer.outputs[0].token_ids) for answer in answers])
        if number in spec.get("reset_after", []):
            assert llm.reset_prefix_cache()
    found = {"tokens": tokens, "seconds": seconds, "resident": resident(llm), "version": vllm.__version__}
    if events:
        time.sleep(2)  # the last batches leave, and a relay that missed some can ask for them
    llm.llm_engine.engine_core.shutdown()
    Path(sys.argv[2]).write_text(json.dumps(found), encoding="utf-8")


def resident(llm: Any) -> list[int]:
    """The hashes that vLLM's own prefix cache can find, as it publishes them: their low 64 bits."""
    scheduler = llm.llm_engine.engine_core.engine_core.scheduler
    cached = scheduler.kv_cache_manager.block_pool.cached_block_hash_to_block._cache
    return [int.from_bytes(bytes(key)[:-4][-8:], "big") for key in cached]


if __name__ == "__main__":
    main()
