#!/usr/bin/env bash
# The playground, and the site where `scripts/site.sh --offline` has built it, in a real browser: Debian's Chromium, driven by
# playwright-core, judged by axe-core (both from npm). Where they cannot be installed this says so and ends well: the page's Python is
# tested without a browser. The pictures it takes lie in .cache/browser: light.png, dark.png, phone.png, site-*.png.
# Arguments are handed to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

skip() {
    printf 'PAGES NOT CHECKED IN A BROWSER: %s\n' "$*"
    exit 0
}

command -v npm >/dev/null || skip 'npm is missing'
if ! { command -v chromium || command -v google-chrome; } >/dev/null; then
    [[ $(id -u) == 0 ]] || skip 'chromium is missing, and only root can install it'
    { timeout 180 apt-get update -qq && timeout 180 apt-get install -qq -y --no-install-recommends chromium; } \
        >/dev/null 2>&1 || skip 'chromium cannot be installed'
fi
mkdir -p .cache/browser
[[ -f .cache/browser/package.json ]] || printf '{"private": true}\n' >.cache/browser/package.json
timeout 120 npm install --prefix .cache/browser --no-audit --no-fund --silent playwright-core@1.64.1 axe-core@4 >/dev/null ||
    skip 'playwright-core cannot be installed'

python=.venv/bin/python
[[ -x $python ]] || python=.venv-ci/bin/python
[[ -x $python ]] || skip 'no environment: run python3 scripts/test.py first'
exec "$python" -m pytest --quiet tests/browser "$@"
