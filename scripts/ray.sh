#!/usr/bin/env bash
# The gateway mounted into Ray Serve, in an environment of its own. No part of CI: Ray fills 600 MB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python3 -m venv .venv-ray
bin=.venv-ray/bin
"$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$bin/python" -m pip install --quiet --editable '.[gateway]' 'ray[serve]>=2.60,<3'

exec "$bin/python" scripts/ray_serve.py
