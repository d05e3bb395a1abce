#!/usr/bin/env bash
# The reader of batches in the real libraries, in an environment of its own: pandas, polars, datasets and Ray Data.
# No part of CI: they fill 850 MB. Arguments are handed to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python3 -m venv .venv-frames
bin=.venv-frames/bin
"$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$bin/python" -m pip install --quiet --editable '.[cli,batch]' --group tests pandas polars datasets 'ray[data]'

export RAY_raylet_start_wait_time_s=300 # its 30 s are too few on a machine that does other things as well
exec env PYTHONPATH="$PWD/src:$PWD/tests" "$bin/python" -m pytest --quiet -W default tests/unit/batch "$@"
