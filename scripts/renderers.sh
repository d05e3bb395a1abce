#!/usr/bin/env bash
# Formats derived from libraries that write conversations in code, in an environment of their own. Arguments are handed to
# pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python3 -m venv .venv-renderers
bin=.venv-renderers/bin
"$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$bin/python" -m pip install --quiet --editable . --group tests mistral_common

exec "$bin/python" -m pytest --quiet tests/conformance/test_renderers.py "$@"
