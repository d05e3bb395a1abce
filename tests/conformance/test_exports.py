"""The vendors' templates exported as response templates, read by transformers' own parser."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import exports
import pytest
from engines import installed
from vendor import all_vendor_templates, vendor_templates

from unrender import ChatTemplate
from unrender.errors import ExportError
from unrender.export import Target
from unrender.format import Slot, ToolMode
from unrender.verify.response_templates import verify_export

TEMPLATES = [pytest.param(path, id=name) for name, path in all_vendor_templates().items()]
TRANSFORMERS = pytest.mark.skipif(not installed("transformers"), reason="transformers is not installed")


def is_expressible(template: ChatTemplate) -> bool:
    """Return whether calls have markers. Response templates can't express code, names as keys, or bare JSON."""
    tools = template.format.tools
    if tools.mode is ToolMode.NONE:
        return True
    is_code = tools.mode is ToolMode.TAG_WITH_TAGGED and tools.arguments.start == "("
    is_key = tools.envelope is not None and tools.envelope.name_is_key
    is_unmarked = not (tools.call_start + tools.call_end).strip()
    is_run = tools.envelope is not None and not tools.envelope.array_wrapped and tools.parallel and is_unmarked
    return Slot.ARGUMENTS in tools.function and not is_code and not is_key and not is_run


@pytest.mark.few(12)
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@pytest.mark.parametrize("path", TEMPLATES)
def test_what_can_be_expressed_is(path: Path) -> None:
    """Formats of JSON, tags with JSON, and tagged arguments are exported for both targets; others are rejected."""
    template = ChatTemplate.from_file(path)

    for target in get_args(Target):
        if is_expressible(template):
            assert template.response_template(target=target).template["fields"]
        else:
            with pytest.raises(ExportError, match="tool calls"):
                template.response_template(target=target)


@TRANSFORMERS
@pytest.mark.filterwarnings("ignore::unrender.errors.FormatWarning")
@pytest.mark.parametrize("path", TEMPLATES)
def test_transformers_read_our_message(path: Path) -> None:
    """Every rendering of the template is parsed into our message, except for the losses that the export lists."""
    template = ChatTemplate.from_file(path)
    if not is_expressible(template):
        pytest.skip("refused, as the other test shows")

    report = verify_export(template, template.response_template())

    assert [(finding.capability, finding.counterexample) for finding in report.failed] == []


@TRANSFORMERS
@pytest.mark.skipif(not TEMPLATES, reason="no vendors' templates at hand")
def test_the_page_of_response_templates_is_current() -> None:
    """The table in docs/howto/transformers.md equals the output of scripts/exports.py."""
    paths = sorted(vendor_templates().values(), key=lambda path: path.stem.lower())
    page = exports.PAGE.read_text(encoding="utf-8")

    current = exports.text(page, paths) == page

    assert current, "exports have changed: use `python3 scripts/run.py exports`"
