"""Builds the C writer with the address and undefined-behaviour sanitizers and calls it with values of any kind.

`make sanitize ARGS="SEEDS CALLS"` does it for long; the tests do it for a moment. Needs gcc with its sanitizers.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "agent/kvtrail_agent/_ring.c"
PROGRAM: Final = ROOT / "tests/agent/fuzz_emit.py"
_FLAGS: Final = ["-std=c11", "-g", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all"]


def build(folder: Path) -> Path:
    """The extension with sanitizers, in a folder. Some seconds.

    Raises:
        subprocess.CalledProcessError: it does not compile; warnings are errors here.
    """
    target = folder / "_ring.abi3.so"
    command = ["gcc", *_FLAGS, "-fsanitize=address,undefined", "-DPy_LIMITED_API=0x030B0000"]
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run([*command, include, str(SOURCE), "-o", str(target)], check=True, timeout=110)  # noqa: S603 - our own source
    return target


def environment() -> dict[str, str]:
    """What a process needs to load such an extension: the sanitizer first, and Python's memory from `malloc`."""
    asked = ["gcc", "-print-file-name=libasan.so"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603 - as above
    path = os.pathsep.join([str(ROOT), *(entry for entry in sys.path if entry)])
    options = {"ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc", "KVTRAIL_PURE_PYTHON": "0"}
    return {**os.environ, **options, "LD_PRELOAD": found.stdout.strip(), "PYTHONPATH": path}


def run(extension: Path, seed: int, calls: int) -> subprocess.CompletedProcess[str]:
    """Call it so often, from a seed."""
    command = [sys.executable, str(PROGRAM), str(seed), str(calls), str(extension)]
    return subprocess.run(  # noqa: S603 - our own program
        command, env=environment(), capture_output=True, text=True, check=False, timeout=600
    )


def main() -> None:
    """Build once, run some seeds, end with 1 at the first that finds something."""
    seeds, calls = [int(text) for text in sys.argv[1:3]] or [10, 5000]
    with tempfile.TemporaryDirectory() as folder:
        extension = build(Path(folder))
        for seed in range(seeds):
            done = run(extension, seed, calls)
            print(f"seed {seed}: {'clean' if done.returncode == 0 else done.stderr[-4000:]}", flush=True)
            if done.returncode:
                sys.exit(1)


if __name__ == "__main__":
    main()
