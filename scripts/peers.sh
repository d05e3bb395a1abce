#!/usr/bin/env bash
# What others' parsers cost beside ours: transformers', vLLM's and SGLang's, without their engines, in the environment of the
# plug-ins' tests. No part of CI.
# Arguments are handed to the benchmark; `scripts/peers.sh --quick` runs it small.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/plugins.sh --set-up
exec .venv-peers/bin/python benchmarks/peers.py "$@"
