"""Runs scripts of this folder in the engines' environment: what they are to do goes in as JSON, what came of it comes out."""

import json
import os
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
LONGEST_S: Final = 1_200

ENVIRONMENT: Final = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def environment(**more: str) -> dict[str, str]:
    """The environment of an engine's process: without what would load this checkout's own Python files."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_", "PYTEST", "KVTRAIL_"))}
    return own | ENVIRONMENT | more


def run_script(python: Path, name: str, spec: dict[str, Any], **more: str) -> dict[str, Any]:
    """Run a script to its end and give its answer; what it printed stands in the error where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        told, answer = Path(folder) / "spec.json", Path(folder) / "answer.json"
        told.write_text(json.dumps(spec), encoding="utf-8")
        done = subprocess.run(
            [python, HERE / name, told, answer],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
            env=environment(**more),
        )

        assert answer.is_file(), f"{name} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"

        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return found | {"log": done.stdout + done.stderr}


def prompts(count: int, seed: int = 1) -> list[list[int]]:
    """Prompts of 100 to 500 tokens; some begin as others do."""
    draw = random.Random(seed)
    shared = [draw.randrange(1024) for _ in range(96)]
    lengths = [draw.choice([100, 300, 500]) for _ in range(count)]
    own = [[draw.randrange(1024) for _ in range(length)] for length in lengths]
    return [shared + prompt[96:] if place % 3 == 0 else prompt for place, prompt in enumerate(own)]


def connector(inner_store: Path, kvtrail: dict[str, Any] | None) -> dict[str, Any]:
    """A `kv_transfer_config`: ExampleConnector by itself, or with ours around it."""
    inner = {"kv_connector": "ExampleConnector", "kv_connector_extra_config": {"shared_storage_path": str(inner_store)}}
    if kvtrail is None:
        return inner | {"kv_role": "kv_both"}
    return {
        "kv_connector": "KvtrailConnector",
        "kv_connector_module_path": "kvtrail_agent.attach.vllm",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"kvtrail": kvtrail, "inner": inner},
    }
