#!/usr/bin/env bash
# The grammar tests, and what generates with transformers, in an environment of their own: both want torch, which is too
# heavy for everybody's tests.
# Arguments are handed to pytest; `scripts/engines.sh -m full` runs the exhaustive sizes, `scripts/engines.sh --set-up` none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=.venv-engines/bin
[[ $OSTYPE != msys ]] || bin=.venv-engines/Scripts # Windows
ready=.venv-engines/ready
if [[ ! $ready -nt pyproject.toml || ! $ready -nt scripts/engines.sh ]]; then
    python3 -m venv .venv-engines
    "$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
    # The CPU build first: xgrammar's own dependency would bring the one with CUDA.
    "$bin/python" -m pip install --quiet torch==2.13.0
    "$bin/python" -m pip install --quiet --editable '.[cli,gateway]' --group tests-and-engines --group exports
    "$bin/python" -m pip install --quiet "xgrammar>=0.2.8,<0.3" accelerate fastapi # The last two let transformers serve.
    touch $ready
fi
[[ ${1:-} == --set-up ]] && exit

# What llguidance alone is asked is left to all tests.
exec "$bin/python" -m pytest --quiet --numprocesses auto -m "not full and not alone" \
    tests/unit/{testing,integrations} tests/unit/emit/test_dialects.py tests/unit/gateway/backends/test_transformers.py \
    tests/hunting/test_engines.py tests/conformance/test_{schemas,keywords,one_grammar,generation}.py "$@"
