#!/usr/bin/env bash
# The chat handler in the real llama-cpp-python, with a random model, in an environment of its own. No part of CI: the package is
# built from its sources, which takes two cores ten minutes. It needs a C++ compiler, CMake and no GPU.
# Arguments are handed to pytest; `scripts/llama.sh --set-up` runs none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=.venv-llama/bin
ready=.venv-llama/ready
if [[ ! $ready -nt pyproject.toml || ! $ready -nt scripts/llama.sh ]]; then
    python3 -m venv .venv-llama
    "$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
    # Little is optimized and nothing is left out that is tested: this build is made quickly, and slow.
    CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF -DGGML_CPU_REPACK=OFF -DLLAVA_BUILD=OFF
        -DLLAMA_OPENSSL=OFF -DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_CXX_FLAGS_RELEASE=-O1" \
        CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} \
        "$bin/python" -m pip install --quiet "llama-cpp-python==${LLAMA:-0.3.36}"
    "$bin/python" -m pip install --quiet --editable . --group tests
    touch $ready
fi
[[ ${1:-} == --set-up ]] && exit

exec "$bin/python" -m pytest --quiet tests/unit/integrations/test_llama_cpp{,_real}.py "$@"
