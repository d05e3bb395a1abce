"""A short, sound template, analysed once, and unsound variants."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from rendering_rows import template_of
from rows import patched

from unrender import ChatTemplate, Format
from unrender.verify.renditions import Candidate

SOURCE = """\
{%- for message in messages %}
{{- '<|' ~ message.role ~ '|>' }}
{%- if message.reasoning_content %}{{ '<think>' ~ message.reasoning_content ~ '</think>' }}{% endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{{- '<call name="' ~ call.function.name ~ '">' ~ call.function.arguments | tojson ~ '</call>' }}
{%- endfor %}
{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
"""


@cache
def sound() -> Candidate:
    """Return the template with its format."""
    return Candidate.of(ChatTemplate.from_string(SOURCE))


def changed(old: str, new: str, **fields: Any) -> Candidate:
    """Return a template whose output differs from its format."""
    assert old in SOURCE
    other = replace(sound().prober, template=template_of(SOURCE.replace(old, new)), texts={})
    return replace(sound(), prober=other, **fields)


OURS = {
    path.stem: path
    for folder in (Path(__file__).parent, Path(__file__).parents[2] / "templates")
    for path in folder.glob("*.jinja")
}


def template_named(name: str) -> ChatTemplate:
    """Return one of our templates, by name, or the template with this source."""
    return ChatTemplate.from_string(OURS[name].read_text("utf-8") if name in OURS else name)


def with_format(template: ChatTemplate, change: dict[str, Any]) -> ChatTemplate:
    """Return a template with a changed format. The change is a merge patch."""
    changed = Format.from_dict(patched(template.format.to_dict(), change))
    return ChatTemplate(template._loaded, format=changed) if change else template
