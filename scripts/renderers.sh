#!/usr/bin/env bash
# Formats derived from libraries that write conversations in code, in an environment of their own. Arguments are handed to
# pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python3 -m venv .venv-renderers
bin=.venv-renderers/bin
"$bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$bin/python" -m pip install --quiet --editable . --group tests mistral_common openai_harmony

# openai_harmony would download its vocabulary. A wheel of litellm carries the same file, under the SHA-1 of its address, so it
# also comes from a package registry; nothing of litellm is installed. openai_harmony checks the file's hash.
vocabulary=.venv-renderers/vocabulary
carrier=litellm==1.80.0
if [[ ! -s $vocabulary/o200k_base.tiktoken ]]; then
    mkdir -p $vocabulary
    "$bin/python" -m pip download --quiet --no-deps --only-binary :all: --dest $vocabulary $carrier &&
        "$bin/python" -m zipfile --extract $vocabulary/litellm-*.whl $vocabulary &&
        mv $vocabulary/litellm/litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790 \
            $vocabulary/o200k_base.tiktoken || {
        echo "openai_harmony has no vocabulary: $carrier could not be fetched, or does not carry o200k_base any more" >&2
        exit 1
    }
    rm -r $vocabulary/litellm*
fi
export TIKTOKEN_ENCODINGS_BASE=$PWD/$vocabulary

exec "$bin/python" -m pytest --quiet tests/conformance/test_{renderers,harmony}.py "$@"
