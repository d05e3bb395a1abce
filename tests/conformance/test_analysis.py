"""Derived formats against the vendors' templates: an answer written from the format equals the template's rendering.

Rules: whitespace counts, except where `LOOSE` gives a reason. A shape that the template doesn't show is skipped. An
entry of `NOT_REBUILT` that does match also fails.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from os.path import commonprefix
from typing import Any

import pytest
from answers import Said, all_template_paths, said_in
from rendering_rows import template_of
from tables import table
from vendor import all_vendor_templates

from unrender.analysis import Analysis, analyze, shape_context, shape_messages

TEMPLATES = all_vendor_templates()
PATHS = all_template_paths()
QUESTION = "Wherefromhere"
T: Any = table("test_analysis")
SHAPES = {name: Said.of(**said) for name, said in T["SHAPES"].items()}
NOT_REBUILT = {(name, shape) for name, found in T["NOT_REBUILT"].items() for shape in found["shapes"]}
"""Shapes that a template renders and its format doesn't reproduce. The data has the reasons."""
LOOSE: dict[str, str] = T["LOOSE"]
"""Templates whose whitespace varies between shapes, so that no single text between parts fits all."""


@cache
def analysed(name: str) -> tuple[Any, Analysis]:
    template = template_of(PATHS[name].read_text(encoding="utf-8"))
    return template, analyze(template)


def rendered(name: str, shape: Said) -> str | None:
    """Return the text after the question, up to EOS; None if the template rejects the shape or drops a part."""
    text = after_question(name, [shape.to_openai()])
    asked = after_question(name, []) or ""
    return None if text is None or not shape.shown_in(text, asked) else text.partition("<eos>")[0]


def after_question(name: str, messages: list[dict[str, Any]]) -> str | None:
    """Return the text that these messages add after a question; None if the template rejects them."""
    template, analysis = analysed(name)
    capabilities = analysis.capabilities
    context = shape_context(T["TOOLS"] if capabilities.supports_tools else None, capabilities, thinking=True)
    shaped = shape_messages([{"role": "user", "content": QUESTION}, *messages], capabilities)
    rendering = template.render(shaped, **({"eos_token": "<eos>"} | context))
    return None if rendering.error is not None else rendering.text.rpartition(QUESTION)[2]


def after_header(name: str, text: str, header: str) -> str:
    """Return the text after the header: the last one in the question's own turn, otherwise the first after it.

    An answer without a header follows the question's turn.
    """
    asked = after_question(name, []) or ""
    if header not in text:
        return text.removeprefix(asked)
    shared = commonprefix([asked, text])
    return text[max(shared.rfind(header), 0) :].partition(header)[2]


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.few(240)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", TEMPLATES)
def test_answer_is_rebuilt(name, shape):
    """An answer written from the derived format equals the rendering, character for character."""
    text = rendered(name, SHAPES[shape])
    if text is None:
        pytest.skip("not observable: the template does not render this")

    format = analysed(name)[1].format
    calls = [(called, arguments, f"proof{i:04d}") for i, (called, arguments) in enumerate(SHAPES[shape].calls)]
    answer = said_in(format, content=SHAPES[shape].content, reasoning=SHAPES[shape].reasoning, calls=calls)
    loose = name in LOOSE
    after = after_header(name, text, format.turn.headers[0].strip() if loose else format.turn.headers[0])
    same = squeezed if loose else str
    # The history may lack the placeholder for empty reasoning and the layout after it.
    empty = format.reasoning.empty
    options = [
        same(answer.removeprefix(left_out)) for left_out in ("", empty, empty + format.turn.reasoning_to_content)
    ]

    rebuilt = any(same(after).startswith(option) for option in options)

    assert rebuilt != ((name, shape) in NOT_REBUILT), f"{options[0]!r}, rendered as {after!r}"


@pytest.mark.parametrize("name", TEMPLATES)
def test_header_ends_the_prompt(name):
    """The generation prompt consists of the text before the header, the header, and the prefill."""
    template, analysis = analysed(name)
    capabilities, turn = analysis.capabilities, analysis.format.turn
    for thinking, prefill in ((True, turn.prefill), (False, turn.prefill_no_thinking)):
        context = shape_context(None, capabilities, thinking=thinking)
        messages = shape_messages([{"role": "user", "content": QUESTION}], capabilities)
        prompt = template.render(messages, add_generation_prompt=True, **context).unwrap()

        assert prompt.endswith(turn.headers[0] + prefill)


@pytest.mark.few(28)
@pytest.mark.parametrize("name", PATHS)
def test_analysis_is_small_and_blind(name):
    """Analysis renders few probes. BOS, EOS and the clock don't change its result, even if both are the template's markers."""
    text = PATHS[name].read_text(encoding="utf-8")
    bos, eos = ("<|im_start|>", "<|im_end|>") if "<|im_end|>" in text else ("<|user|>", "<|end|>")
    other = analyze(template_of(text, bos_token=bos, eos_token=eos, clock=lambda: datetime(1999, 12, 31, tzinfo=UTC)))

    assert other == analysed(name)[1]
    assert other.renderings <= 90
