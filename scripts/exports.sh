#!/usr/bin/env bash
# The tests of exports, in an environment with transformers (torch is not needed), whose parser reads the exports,
# and with the files of TRL, whose response templates are compared with ours.
# Arguments are handed to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

inside=bin
[[ $OSTYPE != msys ]] || inside=Scripts # Windows
bin=.venv-engines/$inside
if [[ ! .venv-engines/ready -nt pyproject.toml ]]; then # The engines' environment has all that is needed here, but costs gigabytes.
    bin=.venv-exports/$inside
    python3 -m venv .venv-exports
    "$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$bin/python" -m pip install --quiet --editable '.[cli]' --group tests --group exports
fi
# Only its files: what it needs to train with is heavy.
"$bin/python" -m pip install --quiet --no-deps trl==1.16.0

# The longest test first, so that the others run beside it.
exec "$bin/python" -m pytest --quiet --numprocesses auto tests/conformance/test_trl.py tests/unit/verify/test_export.py \
    tests/conformance/test_exports.py "$@"
