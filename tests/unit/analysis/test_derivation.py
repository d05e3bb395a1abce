"""The analysis as a whole: golden formats, and what no format may depend on."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import corpus
import hypothesis
import hypothesis.strategies as st
import pytest

from unrender.analysis import analyze
from unrender.analysis.ask.probes import BOS, EOS, carries_needle
from unrender.analysis.derivation import UNEXPECTED
from unrender.format import ContentMode, Format, ReasoningMode, Slot, ToolMode, TurnTexts
from unrender.rendering.template import Template

TEMPLATES = sorted(corpus.TEMPLATES.glob("*.jinja"))
MOST_RENDERINGS = 100


def source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_format_is_golden(path):
    """The derived format is the reviewed one; `scripts/corpus.py` writes them anew."""
    golden = Format.from_json((corpus.GOLDEN / f"{path.stem}.json").read_text(encoding="utf-8"))

    assert corpus.derived_format(path) == golden


@pytest.mark.slow
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_format_does_not_depend_on_tokens_or_dates(path):
    """BOS, EOS and the clock leave no trace, even where EOS is spelled like one of the template's own markers."""
    plain = Template(source(path), bos_token="<s>", eos_token="</s>")
    odd = Template(
        source(path),
        bos_token="<|user|>",
        eos_token="<|end|>",
        clock=lambda: datetime(1999, 12, 31, tzinfo=UTC),
    )

    assert analyze(plain) == analyze(odd)


AMBIGUOUS = {"call-words": "a call with texts: "}
"""By template: what it writes alike for two values. A text in quotation marks looks like a string of code: `f(a="b")`."""


@pytest.mark.slow
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_no_needle_is_left(path):
    """No marker holds a piece of a probe, and nothing rendered remains unexplained."""
    analysis = analyze(Template(source(path)))

    assert not carries_needle(analysis.format.to_json())
    unexplained = [text for text in analysis.diagnostics if text != "tool calls are not rendered"]
    assert [text for text in unexplained if not text.startswith(AMBIGUOUS.get(path.stem, "\n"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_probes_are_few(path):
    """Analysis asks a bounded number of questions."""
    assert analyze(Template(source(path))).renderings <= MOST_RENDERINGS


OTHER_WORDS = {
    "USER": "Whatisup",
    "USER2": "Andnowwhat",
    "CONTENT": "Allfine",
    "CONTENT2": "Notsofine",
    "REASONING": "Letmesee",
    "RESULT": "Tensticks",
    "WORD": "pebble",
    "NAMES": ("open_gate", "count_all", "walk_off"),
    "KEYS": ("alpha_key", "beta_key", "delta_key"),
    "IDS": ("abcdefgh1", "abcdefgh2", "abcdefgh3"),
    "NUMBERS": (51001, 52002, 53003),
}
_OTHER_TEXTS = [word for words in OTHER_WORDS.values() for word in ((words,) if isinstance(words, str) else words)]
OTHER_WORDS["NEEDLES"] = (BOS, EOS, *(word for word in _OTHER_TEXTS if isinstance(word, str)))


@pytest.mark.slow
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_format_does_not_depend_on_needles(path, monkeypatch):
    """Other words for questions, answers, tools, keys, ids and values give the same format."""
    template = Template(source(path))
    before = analyze(template).format
    modules = [module for name, module in sys.modules.items() if name.startswith("unrender.analysis.")]
    for module in modules:
        for name in OTHER_WORDS.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, OTHER_WORDS[name])

    assert analyze(template).format == before


@pytest.mark.slow
def test_every_mode_is_met():
    """The test templates cover all modes of reasoning, content and calls."""
    formats = [corpus.derived_format(path) for path in TEMPLATES]

    assert {format.reasoning.mode for format in formats} == set(ReasoningMode)
    assert {format.content.mode for format in formats} == set(ContentMode)
    assert {format.tools.mode for format in formats} == set(ToolMode)


@pytest.mark.parametrize("text", ["", "hello", "{{ raise_exception('no') }}", "{{ nothing.at.all }}"])
def test_template_without_messages_is_analysed(text):
    """A template that renders nothing, or no messages, ends in a plain format and a word about it."""
    analysis = analyze(Template(text))

    assert analysis.format.tools.mode is ToolMode.NONE
    assert analysis.diagnostics


def test_a_defect_of_analysis_is_a_diagnostic(monkeypatch):
    """A template whose analysis fails can still be rendered and its answers read as content."""

    def broken(*_args: object, **_kwargs: object) -> None:
        raise ValueError("empty separator")

    monkeypatch.setitem(analyze.__globals__, "find_frame", broken)

    analysis = analyze(Template("hello"))

    assert analysis.format == Format()
    assert analysis.diagnostics == (f"{UNEXPECTED}: ValueError: empty separator; the format is content alone",)


PIECES = st.sampled_from(
    [
        "{{ m.role }}",
        "{{ m.content }}",
        "{{ m.content or '' }}",
        "{{ m.reasoning_content }}",
        "{{ m.tool_calls | tojson if m.tool_calls else '' }}",
        "{% for c in m.tool_calls or [] %}{{ c.function.name }}({{ c.function.arguments | tojson }}){% endfor %}",
        "{% for c in m.tool_calls or [] %}{% for k, v in c.function.arguments | items %}{{ k }}={{ v }};{% endfor %}{% endfor %}",
        "{{ c }}",
        "<think>",
        "</think>",
        "<|end|>",
        "[X]",
        "\n",
        " ",
        "{{ '{' }}",
        '"',
    ]
)


@pytest.mark.slow
@hypothesis.given(st.lists(PIECES, max_size=9), st.lists(PIECES, max_size=3))
def test_odd_templates_are_analysed(pieces, tail):
    """Whatever a template writes in whichever order, analysis ends in a format without needles."""
    body = "".join(pieces)
    end = "".join(piece for piece in tail if "m." not in piece)

    analysis = analyze(Template(f"{{% for m in messages %}}{body}{{% endfor %}}{end}"))

    assert not carries_needle(analysis.format.to_json())
    assert Format.from_json(analysis.format.to_json()) == analysis.format


def test_refuted_syntax_is_given_up():
    """Calls that cannot be written again as the template writes them are not claimed."""
    text = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}{{ '[' * loop.index }}{{ c.function.name }}{{ ']' * m.tool_calls | length }}"
        "{{ c.function.arguments | tojson }}{{ loop.revindex * 'x' }}{% endfor %}</>{% endfor %}"
    )

    analysis = analyze(Template(text))

    assert analysis.diagnostics
    assert analysis.format.tools.mode in (ToolMode.NONE, ToolMode.TAG_WITH_JSON)


def test_calls_that_are_written_otherwise_are_given_up():
    """Numbers with a point come out of no codec: the call syntax goes, and the first diagnostic says so."""
    text = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<c>{{ c.function.name }}{{ '{' }}{% for k, v in c.function.arguments.items() %}"
        "{{ '\"' ~ k ~ '\": ' ~ v ~ '.0' ~ (', ' if not loop.last) }}{% endfor %}{{ '}' }}</c>{% endfor %}</>{% endfor %}"
    )

    analysis = analyze(Template(text))

    assert analysis.format.tools.mode is ToolMode.NONE
    assert analysis.given_up[0].startswith("tool calls: the derived syntax does not reproduce")
    assert analysis.diagnostics[: len(analysis.given_up)] == analysis.given_up


def test_markers_with_a_needle_are_given_up():
    """A marker that repeats what the answer says is not a marker, though the others around it are."""
    text = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
        "{% if m.role == 'assistant' %}<end of={{ m.content or m.tool_calls[0].function.name }}>{% endif %}"
        "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}</>"
        "{% endfor %}"
    )

    analysis = analyze(Template(text))

    turn, calls = analysis.given_up
    assert turn == "turn: a marker holds a piece of the probe, and was given up"
    assert calls.startswith("three calls: what the template writes is not read back")
    assert analysis.format.turn == TurnTexts()


def test_content_beside_calls_may_be_written_as_reasoning():
    """That is said, and not counted against the format; content alone and after reasoning begins on its own line."""
    text = (
        "{% for m in messages %}<{{ m.role }}>"
        "{% set thought = m.reasoning_content or (m.content if m.tool_calls) %}"
        "{% if thought %}<think>{{ thought }}</think>{% endif %}"
        "{% if not m.tool_calls %}{{ '\\n' if m.role == 'assistant' and loop.index == 2 }}{{ m.content }}{% endif %}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}: {{ c.function.arguments | tojson }}</call>"
        "{% endfor %}{{ '<end>' if m.role == 'assistant' }}{% endfor %}{{ '<assistant>' if add_generation_prompt }}"
    )

    analysis = analyze(Template(text))
    turn = analysis.format.turn

    assert analysis.diagnostics == ("content beside calls is written as reasoning",)
    assert not analysis.capabilities.supports_content_with_calls
    assert (turn.start_to_content, turn.reasoning_to_content, turn.start_to_tools) == ("\n", "\n", "")


def test_layout_may_show_with_thinking_off_alone():
    """White space that begins an answer only then is what a model may write, and markers after it are not."""
    text = (
        "{% for m in messages %}<{{ m.role }}>"
        "{{ '\\n' if m.role == 'assistant' and enable_thinking is false and loop.index == 2 }}"
        "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}: {{ c.function.arguments | tojson }}</call>"
        "{% endfor %}{{ '<end>' if m.role == 'assistant' }}{% endfor %}"
        "{{ '<assistant>' ~ ('<think></think>' if enable_thinking is false else '') if add_generation_prompt }}"
    )

    analysis = analyze(Template(text))
    turn = analysis.format.turn

    assert analysis.diagnostics == ()
    assert (turn.start_to_content, turn.start_to_tools) == ("\n", "\n")


@pytest.mark.parametrize("quote", ['"', "'"])
def test_attributes_keep_their_quotes(quote):
    """Arguments as attributes of the call's own tag end with the quote with which they begin."""
    source = (
        (
            "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}"
            "{% for c in m.tool_calls or [] %}{{ '<call is=Q' ~ c.function.name ~ 'Q' }}"
            "{% for k, v in c.function.arguments.items() %}{{ ' ' ~ k ~ '=Q' ~ (v if v is string else v | tojson) ~ 'Q' }}"
            "{% endfor %}{{ '/>' }}{% endfor %}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
        )
        .replace("'", '"' if quote == "'" else "'")
        .replace("Q", quote)
    )

    tools = analyze(Template(source)).format.tools

    assert tools.function == (f"<call is={quote}", Slot.NAME, quote, Slot.ARGUMENTS, "/>")
    assert tools.arguments.entry == (" ", Slot.KEY, f"={quote}", Slot.VALUE, quote)


NO_HEADER = """\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{%- if message.reasoning_content -%}{{ '<think>' ~ message.reasoning_content ~ '</think>' }}{%- endif -%}
{{ message.content ~ '<|end|>' }}
{%- else -%}{{ '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""


def test_what_the_prompt_writes_before_any_answer_belongs_to_the_header():
    """The history leaves it out, and it is not a part of reasoning, content or calls: nothing of the answer is begun."""
    turn = analyze(Template(NO_HEADER)).format.turn

    assert turn.headers == ("<|end|>", "<|end|><|assistant|>")
    assert (turn.prefill, turn.prefill_no_thinking) == ("", "")


def test_a_prompt_that_asks_unlike_the_history_is_said():
    """Answers are after another header than the one with which prompts end: nothing shows what a model writes there."""
    source = NO_HEADER.replace("{{ message.content ~", "<|bot|>{{ message.content ~").replace(
        "reasoning_content", "none"
    )

    (_, said) = analyze(Template(source)).diagnostics

    assert said.startswith("the prompt asks with '<|end|><|assistant|>', but '<|bot|>' is before answers")


CALLS_WITHOUT_HEADER = """\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{%- if message.content -%}{{ '<|assistant|><|say|>' ~ message.content ~ '<|stop|>' }}{%- endif -%}
{%- for call in message.tool_calls or [] -%}
{{ '<|call|>' ~ call.function.name ~ '<|args|>' ~ call.function.arguments | tojson ~ '<|/call|>' }}
{%- endfor -%}
{%- else -%}{{ '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""


def test_a_prompt_that_begins_content_where_no_call_follows_is_said():
    """Content begins with what the prompt writes, and calls do not: the same header before calls says nothing."""
    alike = CALLS_WITHOUT_HEADER.replace("'<|call|>' ~", "('<|assistant|>' if loop.first else '') ~ '<|call|>' ~")

    (said,) = analyze(Template(CALLS_WITHOUT_HEADER)).diagnostics

    assert said.startswith("the prompt begins content with '<|assistant|>', and no call follows that")
    assert analyze(Template(alike)).diagnostics == ()


STRINGS_OF_ANOTHER_TYPE = """\
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
<|assistant|>{{ message.content or '' }}
{%- for call in message.tool_calls or [] -%}
{{ '<use name="' ~ call.function.name ~ '">' }}
{%- for key, value in call.function.arguments.items() -%}
{{ '<p name="' ~ key ~ '" type="' ~ ('<text>' if value is string else 'other') ~ '">' }}
{{- (value if value is string else value | tojson) ~ '</p>' }}
{%- endfor -%}
{{ '</use>' }}
{%- endfor -%}<|end|>
{%- else -%}{{ '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""


def test_texts_that_are_not_read_back_are_said():
    """Numbers are read, so the calls are claimed; that their texts are not is a diagnostic."""
    analysis = analyze(Template(STRINGS_OF_ANOTHER_TYPE))

    assert analysis.format.tools.mode is ToolMode.TAG_WITH_TAGGED
    assert any(text.startswith("a call with texts: ") for text in analysis.diagnostics)


ONLY_AFTER_REASONING = """\
{%- for message in messages -%}
{%- if message.role == 'assistant' and message.reasoning_content -%}
{{ '<think>' ~ message.reasoning_content ~ '</think><answer>' ~ message.content ~ '</answer>' }}
{%- elif message.role != 'assistant' -%}{{ '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' }}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}
"""


def test_a_wrapper_is_closed_where_content_is_written_after_reasoning_only():
    """No answer of content alone shows what ends a turn: the marker that closes the opener belongs to content."""
    content = analyze(Template(ONLY_AFTER_REASONING)).format.content

    assert (content.start, content.end) == ("<answer>", "</answer>")


def test_a_word_after_the_conversation_ends_no_turn():
    """What a template appends to a whole conversation may end an answer only where it is a token."""
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
        "{{ '<assistant>' if add_generation_prompt else 'APPENDED' }}"
    )

    ends = [
        analyze(Template(source.replace("APPENDED", text))).format.turn.ends
        for text in ("<bye>", "Bye", "<b><c>", "<a b>")
    ]

    assert ends == [("<bye>",), (), (), ()]
