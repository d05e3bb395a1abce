#!/usr/bin/env bash
# The release as it would be published: built twice to the same bytes, its contents looked at, installed without the checkout with each
# extra alone on every Python that is here, its types measured, tested with the lowest versions that the bounds allow, and its
# dependencies listed with their licences. The archives lie in dist/; sbom.json, licences.md and notes.md in build/.
# `scripts/release.sh build` stops after the archives, for a quick look.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
root=$PWD
PATH=$PATH$(printf ':%s' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin) # where pyenv keeps other Pythons
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s\n' "$*"; }

step 'set up'
tools=.venv-release/bin
if [[ ! .venv-release/ready -nt pyproject.toml ]]; then
    python3 -m venv .venv-release
    "$tools/python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$tools/python" -m pip install --quiet --group release
    touch .venv-release/ready
fi

step 'build, twice to the same bytes'
rm -rf dist build
mkdir build
"$tools/python" -m build --installer uv --outdir dist . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
git archive --prefix=again/ HEAD | tar -x -C "$work"
"$tools/python" -m build --installer uv --outdir "$work/dist" "$work/again" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
diff <(cd dist && sha256sum -- *) <(cd "$work/dist" && sha256sum -- *)
(cd dist && sha256sum -- *)
"$tools/python" -m twine check --strict dist/*
"$tools/python" scripts/distribution.py contents dist
"$tools/python" scripts/distribution.py notes build/notes.md
[[ ${1:-} == build ]] && exit

wheel=$(echo dist/*.whl)
# Unrender's extras, without what fills gigabytes: torch is looked at in scripts/engines.sh.
extras=(batch cli gateway gguf hub otel testing tools)
for version in 3.11 3.12 3.13 3.14; do
    if ! python=$("$tools/uv" python find --no-python-downloads "$version" 2>/dev/null); then
        if [[ $version == 3.14 ]] && command -v npm >/dev/null; then
            step 'Python 3.14 is not here: the core alone, on Pyodide'
            npm install --prefix .cache/pyodide --no-audit --no-fund --silent pyodide@314.0.7 >/dev/null
            "$tools/uv" pip install --quiet --target "$work/core" "$wheel"
            node scripts/smoke.mjs .cache/pyodide/node_modules/pyodide "$work/core"
        else
            step "Python $version is not here: NOT CHECKED"
        fi
        continue
    fi
    for extra in '' "${extras[@]}"; do
        step "Python $version, unrender${extra:+[$extra]} alone"
        "$tools/uv" venv --quiet --clear --python "$python" "$work/venv"
        "$tools/uv" pip install --quiet --python "$work/venv/bin/python" "$wheel${extra:+[$extra]}"
        (cd "$work" && venv/bin/python -I "$root/scripts/smoke.py" "$extra")
    done
done

step 'types: at least 99 % of what is public'
"$tools/uv" venv --quiet --clear "$work/venv"
"$tools/uv" pip install --quiet --python "$work/venv/bin/python" "$wheel[$(IFS=, && echo "${extras[*]}")]"
(cd "$work" && PATH="$work/venv/bin:$PATH" VIRTUAL_ENV="$work/venv" "$root/$tools/pyright" --verifytypes unrender --ignoreexternal --outputjson >types.json) || true
"$tools/python" scripts/distribution.py types "$work/types.json"
echo 'import unrender, unrender.verify; unrender.verify.verify(unrender.ChatTemplate.from_string(""))' >"$work/uses.py"
(cd "$work" && "$root/$tools/pyright" --pythonpath venv/bin/python uses.py)

step 'licences and a bill of materials'
"$tools/cyclonedx-py" environment "$work/venv/bin/python" --pyproject pyproject.toml --output-reproducible --of JSON -o build/sbom.json
"$tools/python" scripts/distribution.py licences build/sbom.json build/licences.md

step 'tests with the lowest versions that the bounds allow'
"$tools/uv" venv --quiet --clear --python 3.11 "$work/venv"
"$tools/uv" pip install --quiet --python "$work/venv/bin/python" --resolution lowest-direct "$wheel[testing]"
(cd "$work" && venv/bin/python -I "$root/scripts/smoke.py" testing)
"$tools/uv" venv --quiet --clear --python 3.11 "$work/venv"
"$tools/uv" pip install --quiet --python "$work/venv/bin/python" --resolution lowest-direct --editable '.[batch,cli,gateway,gguf,hub,otel,tools]'
"$tools/uv" pip install --quiet --python "$work/venv/bin/python" 'pytest>=9,<10' pytest-timeout pytest-xdist hypothesis jsonschema \
    'openai>=3,<4'
"$work/venv/bin/python" -m pytest --quiet -p no:cacheprovider -n 2 tests/unit/test_chat_template.py tests/unit/test_turn.py \
    tests/unit/parsing tests/unit/emit tests/unit/template tests/unit/cli tests/unit/batch
