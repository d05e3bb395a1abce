#!/usr/bin/env bash
# What others' parsers cost beside ours, in an environment of their own: transformers', vLLM's and SGLang's, without their
# engines. No part of CI: torch and the two wheels fill 3.5 GB.
# Arguments are handed to the benchmark; `scripts/peers.sh --quick` runs it small.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python3 -m venv .venv-peers
bin=.venv-peers/bin
"$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
# The CPU build first: what follows would bring the one with CUDA.
"$bin/python" -m pip install --quiet torch==2.13.0
# Only what importing their parsers wants, not all that their engines declare (hence no warnings of conflicts); this version
# of transformers is one that both accept.
"$bin/python" -m pip install --quiet --no-warn-conflicts --editable . transformers==5.19.0 xgrammar==0.2.8 'fastapi>=0.133,<0.137' \
    aiohttp cachetools cbor2 cloudpickle ijson ipython mistral_common msgspec openai openai-harmony orjson \
    partial_json_parser pillow prometheus_client psutil py-cpuinfo pybase64 pydantic pyzmq regex requests uvloop
"$bin/python" -m pip install --quiet --no-deps vllm==0.33.0 sglang==0.5.23

"$bin/python" -m pip install --quiet --no-warn-conflicts 'starlette>=1,<2' 'uvicorn>=0.50,<1' anthropic httpx2 pytest pytest-timeout
# What the gateway sends vLLM, judged by its own request class.
"$bin/python" -m pytest --quiet tests/unit/gateway/backends/test_peers.py

exec "$bin/python" benchmarks/peers.py "$@"
