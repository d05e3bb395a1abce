#!/usr/bin/env bash
# The documentation site, built into .cache/site: every page in the navigation, every link and anchor followed, warnings are errors.
# With --offline the playground has a Pyodide of its own (npm, 17 MB) instead of an address; --serve shows the site while pages are written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export NO_MKDOCS_2_WARNING=1

bin=.venv-site/bin
if [[ ! .venv-site/ready -nt pyproject.toml ]]; then
    python3 -m venv .venv-site
    "$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$bin/python" -m pip install --quiet --editable '.[cli,gateway,batch]' --group site
    touch .venv-site/ready
fi
export PYTHONPATH=scripts
case ${1:-} in
    --serve) exec "$bin/mkdocs" serve --dev-addr 127.0.0.1:8900 ;;
    --offline)
        mkdir -p .cache/pyodide
        npm install --prefix .cache/pyodide --no-audit --no-fund --silent pyodide@314.0.7 >/dev/null
        UNRENDER_PYODIDE=.cache/pyodide/node_modules/pyodide exec "$bin/mkdocs" build --strict
        ;;
    *) exec "$bin/mkdocs" build --strict ;;
esac
