"""The newest releases of what unrender is used with → which of our checks still pass; for a scheduled run.

python3 scripts/compat.py              all checks
python3 scripts/compat.py NAME...      those of these packages
python3 scripts/compat.py --write      writes the ranges that were tested into `docs/reference/engines.md`

Each check is one of our own scripts, in a fresh clone, so that no environment of this checkout changes. After the script has set
up its environment, the packages are raised to their newest releases, bounds or not, and the script's tests run. The table at the
end says which versions ran and what broke; the exit code is 1 when something did.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "engines.md"
_OUTCOME = re.compile(r"\d+ (?:passed|failed|error).*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One script and what it stands for."""

    packages: tuple[str, ...]
    """What is raised to its newest release."""
    tested: str
    """The releases that the script's tests have passed with."""
    script: str
    environment: str
    """The directory of the script's virtual environment."""
    arguments: tuple[str, ...] = ()
    what: str
    dependencies: bool = True
    """Whether pip follows the packages' own requirements."""


CHECKS = (
    Check(
        packages=("vllm", "sglang"),
        tested="vLLM 0.33.0, SGLang 0.5.23",
        script="scripts/plugins.sh",
        environment=".venv-peers",
        what="plug-ins, what the gateway sends, DeepSeek's encoders",
        dependencies=False,
    ),
    Check(
        packages=("llguidance", "xgrammar", "transformers", "accelerate", "fastapi"),
        tested="llguidance 1.9.1, xgrammar 0.2.8, transformers 5.23.0, accelerate 1.15.0, fastapi 0.165.0",
        script="scripts/engines.sh",
        environment=".venv-engines",
        what="grammars, generation in process, transformers serve",
    ),
    Check(
        packages=("transformers", "trl"),
        tested="transformers 5.23.0, TRL 1.16.0",
        script="scripts/exports.sh",
        environment=".venv-exports",
        what="exported response templates",
    ),
    Check(
        packages=("mistral_common", "openai_harmony"),
        tested="mistral_common 1.13.1, openai_harmony 0.0.8",
        script="scripts/renderers.sh",
        environment=".venv-renderers",
        what="templates that are functions",
    ),
    Check(
        packages=("llama-cpp-python",),
        tested="llama-cpp-python 0.3.36",
        script="scripts/llama.sh",
        environment=".venv-llama",
        what="the chat handler, with a random model",
    ),
    Check(
        packages=("pandas", "polars", "datasets", "ray[data]"),
        tested="pandas 3, Polars 1, datasets 5, Ray 2.60",
        script="scripts/frames.sh",
        environment=".venv-frames",
        what="recorded answers in tables",
    ),
    Check(
        packages=("xllamacpp", "llguidance", "openai", "anthropic"),
        tested="xllamacpp 2026.10.11549, openai 3.54.0, anthropic 2.12.0",
        script="scripts/test.py",
        environment=".venv",
        arguments=("tests/unit/gateway", "tests/unit/integrations"),
        what="llama.cpp in process, the gateway's clients",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a check."""

    check: Check
    versions: tuple[str, ...]
    outcome: str
    passed: bool


def main() -> None:
    """Run what is asked for, print the table, and exit with 1 when something broke."""
    wanted = sys.argv[1:]
    if wanted == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
        return
    chosen = [check for check in CHECKS if not wanted or set(wanted) & {_bare(name) for name in check.packages}]
    if not chosen:
        known = sorted({_bare(name) for check in CHECKS for name in check.packages})
        sys.exit(f"no check of {', '.join(wanted)}; there are checks of {', '.join(known)}")
    results = [run(check) for check in chosen]
    print(table(results))
    sys.exit(any(not result.passed for result in results))


def run(check: Check) -> Result:
    """Run a check in a clone of this checkout."""
    with tempfile.TemporaryDirectory(prefix="unrender-compat-") as folder:
        clone = Path(folder) / "unrender"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)  # noqa: S607
        command = [sys.executable if check.script.endswith(".py") else "bash", check.script]
        first = _said([*command, *(check.arguments or ("--collect-only",))], clone)
        python = clone / check.environment / "bin" / "python"
        if not python.exists():
            return Result(check=check, versions=(), outcome=f"not set up: {first[1][-200:]}", passed=False)
        upgrade = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", *check.packages]
        code, told = _said(upgrade if check.dependencies else [*upgrade, "--no-deps"], clone)
        if code:
            return Result(check=check, versions=(), outcome=f"not installed: {told[-200:]}", passed=False)
        code, told = _said([*command, *check.arguments], clone)
        return Result(check=check, versions=_versions(python, check), outcome=outcome(told), passed=code == 0)


def page() -> str:
    """Return the page of tested releases."""
    rows = [f"| {check.tested} | {check.what} | `{check.script}` |" for check in CHECKS]
    return "\n".join([*_INTRODUCTION, "| tested with | what | by |", "|---|---|---|", *rows, *_supported(), ""])


def _supported() -> list[str]:
    """Return which releases the plug-ins fit: the extras of the engines' names say so, and the entry points repeat it."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    rows = [f"- `{need}`" for engine in ("vllm", "sglang") for need in extras[engine]]
    return ["", "The plug-ins fit these releases:", "", *rows, "", *_ELSEWHERE]


_INTRODUCTION = (
    "# Engines and libraries: which releases were tested",
    "",
    "<!-- Written by scripts/compat.py --write -->",
    "",
    "Each script sets up an environment of its own and drives the published, unpatched packages.",
    "`python3 scripts/compat.py` does the same with the newest releases, and says what broke: let a scheduler run it.",
    "No machine with a GPU was at hand: vLLM and SGLang were driven by their own classes, without a model.",
    "",
)


_ELSEWHERE = (
    "`pip install 'unrender[vllm]'` or `'unrender[sglang]'` installs one of them. Beside any other release, unrender changes",
    "nothing: the engine starts as it does without, and a warning in its log names the release that is installed, those that are",
    "supported, and what is missing. A later release that has the same shape is used as well.",
)


def outcome(told: str) -> str:
    r"""Return pytest's own last words.

    >>> outcome("...\n3 passed, 1 skipped in 0.2s\n")
    '3 passed, 1 skipped in 0.2s'
    """
    found = _OUTCOME.findall(told)
    return found[-1] if found else told.strip()[-200:] or "nothing was said"


def table(results: Sequence[Result]) -> str:
    """Return the results as a table of Markdown."""
    rows = [
        f"| {', '.join(result.versions) or '-'} | {result.check.what} | {'ok' if result.passed else 'BROKEN'} | {result.outcome} |"
        for result in results
    ]
    return "\n".join(["| versions | what | result | tests |", "|---|---|---|---|", *rows])


def _versions(python: Path, check: Check) -> tuple[str, ...]:
    code = "import importlib.metadata as m, sys; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep='\\n')"
    _, told = _said([str(python), "-c", code, *map(_bare, check.packages)], ROOT)
    return tuple(told.splitlines())


def _said(command: Sequence[str], folder: Path) -> tuple[int, str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def _bare(name: str) -> str:
    return name.partition("[")[0]


if __name__ == "__main__":
    main()
