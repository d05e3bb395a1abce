#!/usr/bin/env bash
# The gateway mounted into Ray Serve, in an environment of its own. No part of CI: Ray fills 600 MB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python3 -m venv .venv-ray
bin=.venv-ray/bin
"$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$bin/python" -m pip install --quiet --editable '.[gateway]' 'ray[serve]>=2.60,<3'

export RAY_raylet_start_wait_time_s=300 # its 30 s are too few on a machine that does other things as well
exec "$bin/python" scripts/ray_serve.py
