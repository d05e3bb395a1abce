#!/usr/bin/env bash
# The plug-ins inside vLLM and SGLang, driven by these packages' own classes, in an environment of their own. No part of CI:
# torch and the two wheels fill 3.5 GB. No model is needed, and no GPU.
# Arguments are handed to pytest; `scripts/plugins.sh --set-up` runs none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=.venv-peers/bin
ready=.venv-peers/ready
if [[ ! $ready -nt pyproject.toml || ! $ready -nt scripts/plugins.sh ]]; then
    python3 -m venv .venv-peers
    "$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
    # The CPU build first: what follows would bring the one with CUDA.
    "$bin/python" -m pip install --quiet torch==2.13.0
    # Only what importing their parsers wants, not all that their engines declare (hence no warnings of conflicts); this version
    # of transformers is one that both accept.
    "$bin/python" -m pip install --quiet --no-warn-conflicts --editable . transformers==5.19.0 xgrammar==0.2.8 \
        'fastapi>=0.133,<0.137' 'llguidance>=1.7,<2' aiohttp cachetools cbor2 cloudpickle dill ijson ipython mistral_common msgspec openai \
        openai-harmony orjson partial_json_parser pillow prometheus_client psutil py-cpuinfo pybase64 pydantic pyzmq regex \
        requests sentencepiece uvloop compressed-tensors loguru gguf
    "$bin/python" -m pip install --quiet --no-deps "vllm==${VLLM:-0.33.0}" "sglang==${SGLANG:-0.5.23}"
    "$bin/python" -m pip install --quiet --no-warn-conflicts 'starlette>=1,<2' 'uvicorn>=0.50,<1' anthropic httpx2 pytest \
        pytest-timeout pytest-xdist hypothesis jsonschema
    touch $ready
fi
[[ ${1:-} == --set-up ]] && exit

# vLLM's own tests come with its sources alone. pip cannot build these here, and is told to leave them unpacked.
tests=.venv-peers/vllm-tests
records=.venv-peers/vllm-records.jsonl
if [[ ! -d $tests/tests ]]; then
    mkdir -p $tests
    TMPDIR=$PWD/$tests "$bin/python" -m pip download --quiet --no-deps --no-binary vllm --no-build-isolation --no-clean \
        --dest $tests "vllm==${VLLM:-0.33.0}" 2>/dev/null || true
    mv $tests/pip-download-*/vllm_*/tests $tests/
    rm -rf $tests/pip-*
    # These start servers, and want GPUs.
    rm -f $tests/tests/conftest.py $tests/tests/tool_use/conftest.py
    echo "[pytest]" >$tests/pytest.ini
fi
if [[ ! -s $records ]]; then
    # Tests that fail want the Hub; what the others read is recorded.
    env PYTHONPATH="$PWD/tests:$PWD/$tests" HF_HUB_OFFLINE=1 UNRENDER_RECORD=$PWD/$records "$bin/python" -m pytest --quiet \
        --rootdir $tests -p vllm_recorder -p no:cacheprovider --continue-on-collection-errors \
        $tests/tests/{tool_parsers,reasoning,parser,tool_use} >$tests/log.txt || true
fi

# What the gateway sends them is judged by their own request classes.
exec "$bin/python" -m pytest --quiet tests/unit/integrations/test_{vllm,vllm_fixtures,sglang,sglang_situations}.py tests/unit/gateway/backends/test_peers.py \
    tests/conformance/test_encoders.py "$@"
