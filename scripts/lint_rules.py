"""The rules of `unrender lint` into their reference page, a heading for each, to which findings point."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import environment

sys.path.append(str(environment.ROOT / "tests"))

from lint_examples import BROKEN, SOUND

from unrender.lint import RULES, Rule, Severity

PAGE = environment.ROOT / "docs" / "reference" / "lint.md"

OPENING = """# Rules of `unrender lint`

Written by `scripts/lint_rules.py`; do not edit.

How to use them is told in [examine a template](../howto/lint.md).

| severity | means | exit code |
|---|---|--:|
| error | Ordinary conversations fail, or what they say is lost or altered. | 1 |
| warning | Some callers, or what grows from conversations (caches, training), suffer. | 0 |
| note | A choice with a price, or what nearly every template does. | 0 |

`--fail-on warning` or `--fail-on note` makes these count as well, `--ignore RULE` leaves a rule out.

Below each rule stands what breaks it in this template, which is sound:

```jinja
{sound}```
"""


def main() -> None:
    """Write the page to where it is published."""
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the page as it is published."""
    return "\n".join([OPENING.replace("{sound}", SOUND), *_list(), *map(_section, RULES)])


def _list() -> Iterator[str]:
    for severity in Severity:
        links = [f"[{rule.name}](#{rule.name})" for rule in RULES if rule.severity is severity]
        yield f"{severity.capitalize()}s: {', '.join(links)}.\n"


def _section(rule: Rule) -> str:
    return f"""## {rule.name}

| | |
|---|---|
| severity | {rule.severity} |
| looks for | {_cell(rule.looks_for)} |
| harm | {_cell(rule.harm)} |
| fix | {_cell(rule.fix)} |

```diff
{_diff(*BROKEN[rule.name])}
```
"""


def _diff(sound: str, broken: str) -> str:
    """Return the lines of the sound template that change, and what they become."""
    changed = ((line, line.replace(sound, broken)) for line in SOUND.splitlines())
    return "\n".join(f"- {line}\n+ {new}" for line, new in changed if line != new)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
