"""Finds a template's `Capabilities` with probes, and the concessions with which it renders other conversations.

Strategy: names are never guessed. Fields, part types and variables come from the template's own attribute names, string constants and
variables. A candidate is accepted if its needle appears in the rendering. The most common inputs are tried first.

Conversations that combine many features are rendered next. Each feature that these conversations don't confirm is then tested in a short
conversation, if the template accepts the other features of that conversation. If the template rejects it or drops a text, concessions are
tried until everything is rendered, the smallest one first. Later requests with this feature then need only one rendering.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

from unrender.analysis.ask import (
    CONTENT,
    IDS,
    KEYS,
    NAMES,
    NUMBERS,
    REASONING,
    REASONING_WORD,
    RESULT,
    STAND_IN,
    SYSTEM,
    USER,
    Prober,
    assistant,
    make_calls,
    offered_tools,
    result,
    text_between,
    user,
)
from unrender.conversation import Context, ReasoningPlace, Refusal, concede
from unrender.conversation.messages import Conversation, Said
from unrender.conversation.tools import described
from unrender.format import Format, lexemes
from unrender.limits import MAX_ID, MAX_LISTED, MAX_RETRIES
from unrender.proof.split import closers_of, common_prefix, is_tag

_TOOL_WORD = re.compile(r"tool|function", re.IGNORECASE)
_TOOLS_WORD = re.compile(r"tools|functions|(?:tool|function)_(?:list|json|schema|spec|desc|def)", re.IGNORECASE)
"""Matches names of variables that contain all tools. Names for a single tool, or for the style of tools, don't match."""
_AMOUNT_WORD = re.compile(r"budget|effort|mode|content|text|token", re.IGNORECASE)
"""Matches names of variables that aren't booleans."""
_OFF_WORDS = ("disabled", "off", "none", "no", "false", "never", "disable", "no_think", "nothink")
_ON_WORDS = ("enabled", "on", "true", "always", "enable", "high", "max", "think", "auto", "adaptive")
_LOW_WORDS = ("minimal", "low")
"""Reasoning levels that turn reasoning off in some templates."""
_LONG_ID = "call_0123456789abcdef"
_ID_WORD = re.compile(r"(?:\b|_)id(?:s|entifiers?)?\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<!\d)\d{1,2}(?!\d)")
_LENGTH = re.compile(r"length\s*+[!=<>]=?\s*+(\d{1,2})(?!\d)")


def discover(prober: Prober) -> Prober:
    """Return a prober with the capabilities of its template. Never raises."""
    # The order matters: finding calls depends on tools, and finding reasoning depends on calls and roles.
    for step in (_require, _find_tools, _find_roles, _find_thinking, _find_calls, _find_reasoning, _find_mixtures):
        changes = step(prober)
        prober.capabilities = replace(prober.capabilities, **changes)
    return prober


def _require(prober: Prober) -> dict[str, Any]:
    """Find the variables that a template requires to render a plain question."""
    changes: dict[str, Any] = {}
    for _ in range(MAX_RETRIES):
        if _renders(prober, changes):
            break
        repairs = (changes | {name: True} for name in ("requires_typed_content", "requires_tools"))
        working = next((repair for repair in repairs if _renders(prober, repair)), None)
        repaired = working or _with_missing_variable(prober, changes)
        if repaired is None:
            break
        changes = repaired
    return changes


def _renders(prober: Prober, changes: dict[str, Any]) -> bool:
    text = prober.with_capabilities(**changes).render([user()], prompt=True, thinking=None)
    return text is not None and USER in text


def _with_missing_variable(prober: Prober, changes: dict[str, Any]) -> dict[str, Any] | None:
    """Return `changes` with a value for the variable that the template's error reports as missing, or None if no variable is missing.

    The value is used only for probes.
    """
    known = replace(prober.capabilities, **changes).required_context
    rendering = prober.template.render(
        [{"role": "user", "content": USER}], add_generation_prompt=True, **dict[str, Any](known)
    )
    # Find the missing variable in Jinja's error, e.g. `'my_functions' is undefined`.
    match = re.search(r"'(\w+)' is undefined", str(rendering.error))
    if not match or match[1] in dict(known) or match[1] not in prober.template.reads:
        return None
    if not _TOOLS_WORD.search(match[1]):
        return changes | {"required_context": (*known, (match[1], STAND_IN))}
    as_text = {"tools_variable": match[1], "tools_as_text": True, "requires_tools": True}
    return changes | as_text | {"required_context": (*known, (match[1], "[]"))}


def _find_tools(prober: Prober) -> dict[str, Any]:
    usual = prober.capabilities.tools_variable
    names = filter(_TOOL_WORD.search, prober.template.reads)
    ranked = sorted(names, key=lambda name: (name != usual, name != "tools", name))
    # Also try a conversation that ends with an answer, because some templates write tools only there: `{% if messages[-1].role ==
    # "assistant" %}`.
    asked = ([user()], [user(), assistant(CONTENT)])
    for messages, name, as_text in product(asked, ranked[:MAX_LISTED], (False, True)):
        changes = {"tools_variable": name, "tools_as_text": as_text}
        text = prober.with_capabilities(**changes).render(messages, tools=offered_tools(), thinking=None)
        if text is not None and NAMES[0] in text:
            return changes | {"supports_tools": True}
    return {}


def _find_roles(prober: Prober) -> dict[str, Any]:
    def rendered(capability: str, *messages: Said) -> str:
        return prober.with_capabilities(**{capability: True}).render(messages, thinking=None) or ""

    text = rendered("supports_system_role", Said(role="system", content=SYSTEM), user())
    typed = rendered("supports_typed_content", Said(role="user", content=[{"type": "text", "text": USER}]))
    told = rendered("supports_tool_role", user(), assistant(CONTENT), Said(role="tool", content=RESULT))
    # If the rendering contains the list itself, as in `[{'type': 'text', 'text': ...}]`, the template doesn't support content parts.
    listed = re.search(rf"['\"]text['\"]: ['\"]{USER}", typed)
    roles = {"supports_system_role": SYSTEM in text and USER in text, "supports_tool_role": RESULT in told}
    return roles | {"supports_typed_content": USER in typed and not listed}


def _find_thinking(prober: Prober) -> dict[str, Any]:
    """Find the variable that switches thinking (R2), and its values for thinking on and off."""
    known = filter(REASONING_WORD.search, prober.template.reads)
    names = sorted(known, key=lambda name: (name != "enable_thinking", name != "thinking", name))[:MAX_LISTED]
    for name in names:
        for on, off in _switch_values(prober, name):
            if _switches(prober, on, off, after_question=False):
                return {"thinking_on": on, "thinking_off": off, "supports_enable_thinking": True}
    # In `reasoning_effort == "none"`, the variable's name doesn't suggest a switch, but the value `none` turns thinking off.
    weak = [word for word in (*_OFF_WORDS, *_LOW_WORDS) if word in prober.template.facts.string_constants]
    for name, word in product(names, weak):
        # Accept a word only if it changes the text after the question, where the answer starts. A word that changes only other text isn't a
        # switch.
        if _switches(prober, (), ((name, word),), after_question=True):
            return {"thinking_on": (), "thinking_off": ((name, word),), "supports_enable_thinking": True}
    return {}


def _switches(prober: Prober, on: Context, off: Context, *, after_question: bool) -> bool:
    """Return whether the two sets of variables result in different prompts.

    If `after_question` is true, only the text after the question is compared.
    """
    trial = prober.with_capabilities(thinking_on=on, thinking_off=off)
    prompts = [trial.render([user()], prompt=True, thinking=thinking) for thinking in (True, False)]
    shown = [prompt.rpartition(USER)[2] if after_question else prompt for prompt in prompts if prompt is not None]
    return len(shown) == 2 and shown[0] != shown[1]


def _switch_values(prober: Prober, name: str) -> Iterator[tuple[Context, Context]]:
    """Yield pairs of values that turn thinking on and off. The values are those that the template compares with the variable, or the two
    booleans.

    If no value turns thinking on, the variable is set only to turn thinking off.
    """
    # `mode == "off"` and `mode in ["on", "off"]` show the values that the template supports.
    compared = re.findall(
        rf"\b{name}\s*+(?:==|!=|in|not in)\s*+(?:[\[(]\s*+)?((?>(?:['\"][\w-]++['\"],?\s*+)+))", prober.template.source
    )
    words = [word for group in compared for word in re.findall(r"[\w-]+", group)]
    offs = [word for word in _OFF_WORDS if word in words]
    ons = [word for word in _ON_WORDS if word in words] or [word for word in words if word not in offs]
    if offs and ons:
        yield ((name, ons[0]),), ((name, offs[0]),)
    if not words and not _AMOUNT_WORD.search(name):
        yield ((name, True),), ((name, False),)
    if offs or "budget" in name:
        yield (), ((name, offs[0] if offs else 0),)


def _find_calls(prober: Prober) -> dict[str, Any]:
    """Return the best shape of call: the shape that the template renders completely, with the least text around the call."""
    kinds = (list(_rank_call_shapes(prober, more)) for more in _kinds_of_calls(prober))
    ranked = next(filter(None, kinds), None)
    if ranked is None:
        return {}
    best = min(ranked, key=lambda item: item[0])[1]
    readable = any(not any(rank[:2]) and not shape["supports_object_arguments"] for rank, shape in ranked)
    return best | {
        "supports_tool_calls": True,
        "supports_string_arguments": readable,
        **_find_ids(prober.with_capabilities(**best)),
    }


def _kinds_of_calls(prober: Prober) -> Iterator[dict[str, Any]]:
    """Yield the usual kind of calls, then alternatives. The first kind that the template renders will be used."""
    yield {}
    mapped = prober.with_capabilities(supports_object_arguments=True)
    # Try text values, because templates such as `'<parameter=' + name + '>' + value` fail for numbers.
    if mapped.answer(assistant(calls=make_calls(1))) is None:
        yield {"requires_text_values": True}
    yield from _forms_of_ids(prober)
    yield {"requires_flat_calls": True}
    yield {"requires_name_in_id": True}


def _forms_of_ids(prober: Prober) -> Iterator[dict[str, Any]]:
    """Yield forms of ids that the template may require.

    The lengths of ids come from the template's error messages, or else from comparisons in its source.
    """
    # Find the length in the error, e.g. `ids must have 12 digits`, or in the source, e.g. `{% if call.id | length != 12 %}`.
    told = " ".join(text for text in dict.fromkeys(prober.complaints.values()) if _ID_WORD.search(text))
    lengths = _NUMBER.findall(told) or (_LENGTH.findall(prober.template.source) if told else [])
    known = [length for length in map(int, dict.fromkeys(lengths)) if 3 < length <= MAX_ID]
    for length, digits in product(known[:MAX_RETRIES], (False, True)):
        yield {"requires_short_id": True, "id_length": length, "requires_digits_in_id": digits}


def _rank_call_shapes(prober: Prober, more: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    for as_object, nonnull in product((True,) if "requires_text_values" in more else (True, False), (True, False)):
        shape = {"supports_object_arguments": as_object, "requires_nonnull_content": nonnull} | more
        text = prober.with_capabilities(**shape).answer(assistant(calls=make_calls(1)))
        if text is None or not _names_calls(prober, text) or (not nonnull and "None" in text):
            continue
        unseen = KEYS[0] not in text or str(NUMBERS[0]) not in text
        escaped = re.search(rf"\\[\"']{KEYS[0]}", text) is not None
        # If a template renders `{"name": "f", "arguments": {'a': 1}}`, prefer arguments as text, with which it produces valid JSON.
        escaped = escaped or (f'"{NAMES[0]}"' in text and f"'{KEYS[0]}'" in text)
        # Best first: fully rendered, without escaped quotes, with arguments as an object, and with little text around the call.
        yield (unseen, escaped, not as_object, len(text), not nonnull), shape


def _names_calls(prober: Prober, text: str, count: int = 1) -> bool:
    """Return whether an answer with `count` calls contains the tools' names more often than an answer without calls.

    Both compared conversations end with an answer, because some templates list their tools only after an answer, and others only after an
    open question.
    """
    # Count only additional names: in `Hi</b>[{"name": "find_zorvane"…}]`, the tool is listed after an answer, but not called.
    silent = prober.answer(assistant(CONTENT)) or ""
    return all(text.count(name) > silent.count(name) for name in NAMES[:count])


def _find_ids(prober: Prober) -> dict[str, Any]:
    (short,) = make_calls(1)
    text = prober.answer(assistant(calls=[short])) or ""
    long = replace(short, id=_LONG_ID)
    told = prober.with_capabilities(supports_tool_role=True)
    # Also render a result, because some templates check only the ids of results: `{% if m.tool_call_id | length != 9 %}`.
    for form in chain(({},), _forms_of_ids(prober)):
        with_result = told.with_capabilities(**form).answer(assistant(calls=[short]), after=[result(short)])
        if with_result is not None:
            break
    after = [] if with_result is None else [result(long)]
    refused = (told if after else prober).answer(assistant(calls=[long]), after=after) is None
    two = prober.answer(assistant(calls=make_calls(2))) or ""
    shortened = {"requires_short_id": True} if refused else {}
    return (
        shortened
        | ({} if with_result is None else form)
        | {
            "supports_call_id": IDS[0] in text,
            "supports_parallel_tool_calls": _names_calls(prober, two, 2),
            "supports_tool_role": RESULT in (with_result or ""),
        }
    )


def _find_reasoning(prober: Prober) -> dict[str, Any]:
    """Find the message field whose text the template renders as reasoning (R1)."""
    for place, name in _reasoning_places(prober):
        changes: dict[str, Any] = {"reasoning_place": place, "reasoning_field": name}
        trial = prober.with_capabilities(**changes)
        shapes = [assistant(CONTENT, REASONING), assistant("", REASONING, make_calls(1))]
        if any(_marks_reasoning(trial, shape) for shape in shapes):
            history = trial.render([user("first"), assistant(CONTENT, REASONING), user()]) or ""
            return changes | {"supports_preserve_reasoning": REASONING in history}
    return {}


def _marks_reasoning(prober: Prober, message: Said) -> bool:
    """Return whether reasoning is rendered and can be distinguished from content."""
    text = prober.answer(message)
    # Reject renderings of the list itself, such as `[{'type': 'thinking', 'thinking': …}]`: the template doesn't support parts.
    parts = rf"['\"]type['\"]: ['\"]\w+['\"], ['\"]\w+['\"]: ['\"]{REASONING}"
    if text is None or REASONING not in text or re.search(parts, text):
        return False
    # If only whitespace separates reasoning from content, as in `Rsnvolquet Contzurbin`, no parser can distinguish the two.
    between = text_between(text, REASONING, CONTENT)
    if between is not None:
        return bool(between.strip())
    # Reasoning can be distinguished from content if the same text is rendered differently as content.
    if text.replace(REASONING, CONTENT) != prober.answer(replace(message, content=CONTENT, reasoning="")):
        return True
    # If content before calls is rendered as reasoning, as in `<plan>…</plan><call>`, check whether content alone has no such markers.
    before, alone = text.partition(REASONING)[0], (prober.answer(assistant(CONTENT)) or "").partition(CONTENT)[0]
    before_call = text_between(text, REASONING, NAMES[0]) or ""
    own = filter(is_tag, lexemes(before[len(common_prefix([before, alone])) :]))
    return any(closer in before_call for tag in own for closer in closers_of(tag))


def _reasoning_places(prober: Prober) -> Iterator[tuple[ReasoningPlace, str]]:
    template = prober.template
    names = template.facts.attribute_names | set(template.facts.string_constants)
    words = sorted(name for name in names if name.isidentifier() and REASONING_WORD.search(name))[:MAX_LISTED]
    fields = sorted(words, key=lambda name: (name != "reasoning_content", name != "reasoning", name != "thinking"))
    yield from ((ReasoningPlace.FIELD, name) for name in fields)
    places = (ReasoningPlace.PART, ReasoningPlace.BLOCK) if "blocks" in names else (ReasoningPlace.PART,)
    yield from product(places, (name for name in words if name in template.facts.string_constants))


def _find_mixtures(prober: Prober) -> dict[str, Any]:
    if not prober.capabilities.supports_tool_calls:
        return {}
    trial = prober.with_capabilities(supports_content_with_reasoning_and_calls=True)
    pair = trial.answer(assistant(CONTENT, calls=make_calls(1))) or ""
    triple = trial.answer(assistant(CONTENT, REASONING, make_calls(1)))
    # Also try empty content, because a template such as `{% if m.content is string %}{{ m.reasoning }}…` drops reasoning if content is
    # null.
    texts = prober.with_capabilities(requires_nonnull_content=True)
    shown = (caps.answer(assistant("", REASONING, make_calls(1))) or "" for caps in (prober, texts))
    by_null, by_text = (REASONING in text and _names_calls(prober, text) for text in shown)
    changes = {"requires_nonnull_content": True} if by_text and not by_null else {}
    return changes | {
        "supports_content_with_calls": CONTENT in pair and _names_calls(trial, pair),
        "supports_content_with_reasoning_and_calls": triple is not None,
    }


_OWN = re.compile("feature", re.IGNORECASE)
"""Matches a word that occurs in every conversation of `FEATURES`, so that errors which quote a conversation can be recognized."""
_QUESTION = Said(role="user", content=USER)


def find_refusals(prober: Prober, format: Format) -> tuple[Refusal, ...]:
    """Return the refusals of all features that a template rejects. `format` is the format of the template's answers."""
    found: list[Refusal] = []
    if prober.render((_QUESTION,), prompt=True, thinking=None) is None:
        return ()
    asked = {name: feature for name, feature in concede.FEATURES.items() if _may_have(prober, feature)}
    shown = _shown(prober, asked)
    for name in (name for name in asked if name not in shown):
        switched = asked[name].thoughts and prober.capabilities.supports_enable_thinking
        for thinking in (True, False) if switched else (None,):
            found += _refusals(prober, name, thinking, found, format)
            if prober.spent.is_over:
                return ()
    return tuple(found)


def _refusals(
    prober: Prober, name: str, thinking: bool | None, found: Sequence[Refusal], format: Format
) -> Iterator[Refusal]:
    """Yield the refusals of a feature, with separate refusals if the template's reasons differ with and without tools."""
    feature, can = concede.FEATURES[name], prober.capabilities
    on = True if thinking is None and can.supports_enable_thinking else thinking
    faults: dict[bool | None, tuple[str, _Asked, Conversation]] = {}
    for tools in (True, False) if can.supports_tools and not feature.calls else (None,):
        known = [one for one in found if one.holds(thinking=on, tools=tools is not False)]
        if not concede.is_hopeless(feature.example, known):
            asked = _Asked(prober, feature.example, on, tools)
            said = concede.rewritten(feature.example, concede.foreseen(feature.example, known, format), format)
            faults[tools] = (asked.fault(said), asked, said)
    if len({why for why, _, _ in faults.values()}) == 1 < len(faults):
        faults = {None: faults[True]}
    for tools, (why, asked, said) in faults.items():
        if why:
            tried = concede.ways(said, format, (*concede.MOVES, *concede.CONCESSIONS))
            helping = next((way for way in tried if not asked.fault(concede.rewritten(said, way, format))), ())
            words = tuple(concession.words for concession in helping)
            yield Refusal(feature=name, why=why, concessions=words, thinking=thinking, tools=tools)


def _may_have(prober: Prober, feature: concede.Feature) -> bool:
    """Return whether conversations with this feature are possible for the template."""
    has_developer = any(said.role == "developer" for said in feature.example)
    return (prober.capabilities.supports_tool_calls or not feature.calls) and (
        concede.knows_developer(prober.template.facts.string_constants) or not has_developer
    )


def _shown(prober: Prober, features: Mapping[str, concede.Feature]) -> set[str]:
    """Return the names of features that need no concessions, with or without thinking and tools."""
    can, shown = prober.capabilities, set[str]()
    on = (True if can.supports_enable_thinking else None, can.supports_tools or None)
    for i, conversation in enumerate((*concede.TOGETHER, *(feature.example for feature in features.values()))):
        new = {name for name, one in concede.FEATURES.items() if one.found(conversation)} - shown
        # If a conversation with many features is too long for this template, test the features one by one.
        if i < len(concede.TOGETHER) and prober.spent.exhausted:
            continue
        # A short conversation must not confirm other features, because a template may accept an unprompted answer in one place and reject
        # it in another.
        if not new or not features.keys() >= new or (len(new) > 1 and i >= len(concede.TOGETHER)):
            continue
        # Also render the first conversation without tools, and render conversations with reasoning with thinking switched off.
        off = (on[0] and not any(features[name].thoughts for name in new), on[1] and i > 0)
        if not any(_Asked(prober, conversation, *one).fault() for one in dict.fromkeys((on, off))):
            shown |= new
    return shown


def find_tools_wanted(prober: Prober) -> dict[str, Any]:
    """Return the fields of `Capabilities` that describe the template's requirements for tools."""

    def takes(tool: Mapping[str, Any]) -> bool:
        return prober.render((_QUESTION,), tools=[tool], prompt=True, thinking=None) is not None

    mixed = _tool({"type": ["string", "null"]})
    if not prober.capabilities.supports_tools or takes(mixed):
        return {}
    bare, in_words = _tool({}), described(mixed, plain=False)
    return {
        "requires_descriptions": not takes(bare) and takes(described(bare, plain=False)),
        "requires_single_types": not takes(in_words) and takes(described(in_words, plain=True)),
    }


def _tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"value": {"type": "string", **schema}}}
    return {"type": "function", "function": {"name": "feature_tool", "parameters": parameters}}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A conversation to render, with its options."""

    prober: Prober
    example: Conversation
    thinking: bool | None
    tools: bool | None
    """If false, no tools are offered, even if the template supports tools."""

    def fault(self, said: Conversation | None = None) -> str:
        """Return a warning if the template rejects the conversation or doesn't render all messages, otherwise an empty string."""
        tools = None if self.tools is False else self.prober.offered
        text, error = self.prober.ask(said or self.example, tools=tools, prompt=True, thinking=self.thinking)
        if text is None:
            # Don't quote errors that contain text from this conversation, because users' conversations don't contain that text.
            return "refuses the conversation" + ("" if _OWN.search(error) else f" ({error:.200})")
        words = (str(one.content) for one in self.example if one.role != "assistant")
        return "" if all(word in text for word in words) else "doesn't show all messages"
