"""Convert a caller's additional options (thinking, documents, variables) to a template's own variables.

Strategy: Four general option names control thinking. These options work with every template: they set the template's own variable for the
thinking switch or the effort. All other names are the template's own variables. To find out what a variable does, a short question is
rendered.

Rules: The same request must work with every template, so an option that a template doesn't use only adds a note that names the option.
Malformed options and misspelled arguments of `prepare` are errors with every template. None means that an option isn't set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unrender.cache import kept
from unrender.conversation import Capabilities, shape_context
from unrender.conversation.adapt import shaped
from unrender.conversation.messages import Said
from unrender.errors import RequestError
from unrender.json_values import checked_list, checked_object, frozen
from unrender.limits import MAX_LISTED
from unrender.rendering import STANDARD_VARIABLES, Template, copied
from unrender.signatures import did_you_mean

THINKING = "enable_thinking"
"""Name of the thinking switch in transformers. Analysis finds the names that other templates use."""
EFFORT, BUDGET = "reasoning_effort", "thinking_budget"
_SWITCHES = (THINKING, "thinking", EFFORT, BUDGET)
"""General option names that control thinking with every template."""
_MORE = "chat_template_kwargs"
"""Option for additional variables, named as in inference engines."""
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
"""Levels of reasoning effort, in increasing order."""
_NOT_AT_ALL = ("none", "off", "disabled", "no", "false")
_AMOUNTS: Mapping[str, tuple[str, ...]] = {EFFORT: ("effort", "strength"), BUDGET: ("budget",)}
"""Words in the names of variables that set an effort level or a token budget."""
_ON, _OFF = "/think", "/no_think"
"""Words that turn thinking on or off in some templates if a question contains them."""
NOT_SET = STANDARD_VARIABLES | {"raise_exception", "strftime_now", "range", "dict", "namespace", "cycler", "joiner"}
"""Names that callers can't set: standard variables, and functions that templates may call."""
_ARGUMENTS = (
    *("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_format"),
    *("continue_final_message", "tool_format", "describe_tools", "markers", "add_generation_prompt"),
)
"""Names that can't be template variables: arguments of `prepare`, and values that `prepare` sets itself."""
_RESERVED = (*_ARGUMENTS, _MORE, "bos_token", "eos_token")
"""Names of template variables that a server's clients may not set."""
_ELSEWHERE: Mapping[str, str] = {
    **{name: f"turn.parser({name}=…) or turn.stream(chunks, {name}=…)" for name in ("policy", "ids", "strict")},
    **{name: f"ChatTemplate.from_pretrained(…, {name}=…)" for name in ("format", "grammar", "limits", "cache")},
    **dict.fromkeys(("max_tokens", "temperature", "top_p", "stop", "seed", "logprobs"), "the parameters of the engine"),
    "model": "turn.openai_chunks(chunks, model=…)",
    "engine": "turn.constraint(engine)",
    "stream": "turn.stream(chunks)",
}
"""Maps arguments of other functions to code that takes them."""
DATE = re.compile(r"(?:current_|todays?_)?(?:date|datetime|today)(?:_str|_string)?", re.IGNORECASE)
"""Matches the names of variables for the current date."""
_CLOSE = 0.85
"""Minimum similarity of two names that counts as a misspelling, as in `tool_choise` for `tool_choice`."""
_QUESTION = "Hello"
_TRIED = (True, False, "low", "high", 1)
"""Values that are tried to find out whether a variable changes the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateKwargs:
    """Variables for rendering, and the resulting thinking mode."""

    context: Mapping[str, Any]
    """Variables of the template."""
    thinking: bool | None = None
    """True if the model thinks, as requested or by default. None if thinking can't be switched or isn't visible in the prompt."""
    word: str = ""
    """Text to append to the last question, such as `/no_think`, for templates that look for it."""
    switched: Mapping[str, Any] = field(default_factory=dict)
    """The thinking settings that were requested, by their general names."""
    unswitched: tuple[tuple[str, Any], ...] = ()
    """The variables to use if the thinking settings have to be ignored."""
    notes: tuple[str, ...] = ()
    """Notes on arguments that are ignored or don't have the requested effect."""

    def without_switch(self, template: Template, capabilities: Capabilities) -> TemplateKwargs:
        """Return a copy that ignores the thinking settings."""
        context = dict(self.unswitched)
        thinking = _thinking_of(context, template, capabilities) if capabilities.supports_enable_thinking else None
        return replace(self, context=context, thinking=thinking, word="", switched={}, unswitched=())


def resolve_kwargs(
    given: Mapping[str, Any],
    template: Template,
    capabilities: Capabilities,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    beside: Template | None = None,
) -> TemplateKwargs:
    """Return the variables for rendering. `given` are the caller's options in addition to messages and tools.

    `beside` is the model's other template, for requests with tools if `template` is for requests without tools, or vice versa. A variable
    that only `beside` uses adds no note. Raises `RequestError` for a malformed value, and for a misspelled argument of `prepare`.
    """
    said = _unpacked(given)
    context, notes = shape_context(tools, replace(capabilities, required_context=())), list[str]()
    documents = said.pop("documents", None)
    listed = () if documents is None else checked_list(documents, "documents")
    if documents is not None and "documents" in template.reads:
        context["documents"] = documents
    elif listed:
        copied(documents, "documents")  # Check the documents even if the template doesn't use them.
        notes.append("documents: not supported by the template; put their text in a message")
    switches = {name: said.pop(name) for name in _SWITCHES if name in said}
    reads = template.reads | STANDARD_VARIABLES | (beside.reads if beside else frozenset())
    for name, value in said.items():
        if name in reads:
            context[name] = value
        else:
            notes.append(_unread(name, template))
    for name, _ in capabilities.required_context:
        if name not in context and DATE.fullmatch(name):
            context[name] = template.today
            notes.append(f"{name}: required by the template; set to today's date, {template.today}")
    thinking, word, told = _switch(switches, template, capabilities, notes)
    before, context = tuple(context.items()), context | told
    if thinking is None and capabilities.supports_enable_thinking:
        thinking = _thinking_of(context, template, capabilities)
    return TemplateKwargs(
        context=context, thinking=thinking, word=word, switched=switches, unswitched=before, notes=tuple(notes)
    )


def _unpacked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as a dict. Options that are None are left out. Raises `RequestError` if an option is malformed."""
    more = checked_object(given.get(_MORE) or {}, _MORE, "an object with variables")
    own = [name for name in given if name in _ARGUMENTS]
    own += [f"{_MORE}.{name}" for name in more if name in _RESERVED or not isinstance(name, str)]
    if own:
        raise RequestError(f"{own[0]}: set by prepare(), not allowed among the template's variables")
    said = {name: value for name, value in {**given, **more}.items() if value is not None and name != _MORE}
    if not isinstance(said.get(THINKING), bool | None):
        raise RequestError(f"{THINKING}: expected True or False, found {said[THINKING]!r:.60}")
    # Convert Anthropic's `thinking={"type": "enabled", "budget_tokens": 1024}`.
    if isinstance(thinking := said.get("thinking"), Mapping):
        said["thinking"] = thinking.get("type") != "disabled"
        if said["thinking"] and (budget := thinking.get("budget_tokens")) is not None:
            said.setdefault(BUDGET, budget)
    return said


def _unread(name: str, template: Template) -> str:
    """Return the warning for an unused variable. Raises `RequestError` if the name is a misspelled argument of `prepare`."""
    if name in _ELSEWHERE:
        raise RequestError(f"{name}: not an argument of prepare(); use {_ELSEWHERE[name]}")
    if meant := did_you_mean(name, [*_ARGUMENTS, *_SWITCHES, _MORE, "documents"], cutoff=_CLOSE):
        raise RequestError(f"{name}: unknown argument, and the template doesn't use it{meant}")
    known = sorted(template.variables - NOT_SET)
    return f"{name}: not a variable of the template" + (did_you_mean(name, known) or f": {known}")


# Thinking.


def _switch(
    said: Mapping[str, Any], template: Template, capabilities: Capabilities, notes: list[str]
) -> tuple[bool | None, str, dict[str, Any]]:
    """Return whether thinking is on, the text to append to the last question, and the variables to set.

    `said` may contain any of the four general names. Settings that the template doesn't support are added to `notes`.
    """
    # A thinking switch takes precedence over an effort: `thinking=False, reasoning_effort="low"` turns thinking off.
    asked = {name: _is_on(said[name]) for name in _SWITCHES if name in said}
    on = next(iter(asked.values()), None)
    if on is None:
        return None, "", {}
    switch = dict(capabilities.thinking_on if on else capabilities.thinking_off)
    word = "" if capabilities.supports_enable_thinking else _words(template, capabilities).get(on)
    switched = word is not None
    context: dict[str, Any] = {}
    ignored = []
    for name, is_on in asked.items():
        value = said[name]
        if name in _AMOUNTS and is_on:
            if switched and not on:
                continue
            variable, told = _amount(name, value, template, capabilities)
            if not variable:
                ignored.append(name)
                continue
            context[variable] = told
            if told != value:
                notes.append(f"{name}: the template doesn't support {value!r:.60}; set to {told!r}")
        elif name in template.variables and (name != EFFORT or _closes(value, template, capabilities)):
            if name not in switch or isinstance(value, str):
                context[name] = value
        elif not switched:
            ignored.append(name)
    if ignored:
        named = ", ".join(ignored)
        unknown = "not supported by the template; thinking is on"
        notes.append(f"{named}: {unknown if switched else 'ignored, since the template has no switch for thinking'}")
    # If thinking is on, an explicit effort overrides the variables of the switch.
    return on if switched else None, word or "", switch | context if on else context | switch


def _is_on(value: Any) -> bool:
    """Return whether the value of a switch or effort turns thinking on."""
    return value.lower() not in _NOT_AT_ALL if isinstance(value, str) else bool(value)


def _amount(name: str, value: Any, template: Template, capabilities: Capabilities) -> tuple[str, Any]:
    """Return the name of the template's variable for an effort or a budget, and the nearest supported value. The name is "" if there is no
    such variable.
    """
    variable, words = _amounts(name, template, capabilities)
    if not variable or value in words or name == BUDGET:
        return variable, value if variable else None
    if value not in EFFORTS or not words:
        return (variable, value) if variable == name else ("", None)
    # If two levels are equally near, choose the higher one: "medium" becomes "high" if a template supports "low" and "high".
    rank = EFFORTS.index(value)
    return variable, min(reversed(words), key=lambda word: abs(EFFORTS.index(word) - rank))


@kept(1_000)
def _amounts(name: str, template: Template, capabilities: Capabilities) -> tuple[str, tuple[str, ...]]:
    """Return the template's variable for `name`, and the levels that it accepts."""
    named = (other for other in sorted(template.variables) if any(word in other for word in _AMOUNTS[name]))
    for variable in sorted(named, key=lambda other: other != name)[:MAX_LISTED]:
        on = dict(capabilities.thinking_on)
        prompts = {word: _prompt(template, capabilities, {**on, variable: word}) for word in EFFORTS}
        taken = tuple(word for word in EFFORTS if prompts[word] is not None)
        if name in (variable, BUDGET) or len({prompts[word] for word in taken}) > 1:
            return variable, taken
    return "", ()


def _closes(word: str, template: Template, capabilities: Capabilities) -> bool:
    """Return whether the effort `word` changes the start of the answer instead of just the text before the question."""
    prompts = [_prompt(template, capabilities, {EFFORT: effort}) for effort in (word, "high")]
    none, high = (prompt and prompt.rpartition(_QUESTION)[2] for prompt in prompts)
    return none is not None and none != high


@kept(500)
def _words(template: Template, capabilities: Capabilities) -> Mapping[bool, str]:
    """Return the text that turns thinking on when appended to a question, and the text that turns it off. A text of "" means that nothing
    has to be appended.

    Returns an empty mapping for templates that don't look for such text.
    """

    def begun(*said: str) -> str | None:
        prompt = _prompt(template, capabilities, question=" ".join((_QUESTION, *said)))
        return prompt and "".join(prompt.rpartition(_QUESTION)[2].replace(said[0] if said else "", "").split())

    usual = begun()
    known = any(_OFF in text for text in template.facts.string_constants) and begun(_OFF) not in (None, usual)
    return {True: "" if begun(_ON) in (None, usual) else _ON, False: _OFF} if known else {}


def _thinking_of(context: Mapping[str, Any], template: Template, capabilities: Capabilities) -> bool | None:
    """Return whether the variables in `context`, or else the template's default, turn thinking on. Returns None if this can't be
    determined.
    """
    for on, switch in ((True, capabilities.thinking_on), (False, capabilities.thinking_off)):
        if switch and all(context.get(name, _MISSING) == value for name, value in switch):
            return on
    return _default_thinking(template, capabilities)


_MISSING = object()


@kept(200)
def _default_thinking(template: Template, capabilities: Capabilities) -> bool | None:
    """Return whether thinking is on by default, or None if the prompt doesn't show this."""
    # Compare the default prompt with those for thinking on and off, since a variable's name doesn't show its default. For example, thinking
    # is off by default in `{% if not thinking %}<think></think>`.
    switches = ((), capabilities.thinking_on, capabilities.thinking_off)
    left_out, on, off = (_prompt(template, capabilities, dict(switch)) for switch in switches)
    if on == off:
        return None
    return left_out == on if left_out in (on, off) else None


# Variables of a template.


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable that a caller may set."""

    name: str
    default: Any = None
    """The default value if it's a constant in the template's source, else None."""
    changes: tuple[Any, ...] = ()
    """The tried values that change the prompt of a short conversation."""


@kept(4_000)
def own_variables(template: Template, capabilities: Capabilities) -> Mapping[str, Variable]:
    """Return the template variables that a caller may set, by name. Standard variables are left out."""
    names = sorted(template.variables - NOT_SET - {capabilities.tools_variable})
    # A value that the template rejects counts as one that doesn't change the prompt.
    usual = (_prompt(template, capabilities), None)
    found: dict[str, Variable] = {}
    for name in names:
        changes = tuple(value for value in _TRIED if _prompt(template, capabilities, {name: value}) not in usual)
        found[name] = Variable(name=name, default=template.facts.defaults.get(name), changes=changes)
    variables: Mapping[str, Variable] = frozen(found)
    return variables


def _prompt(
    template: Template, capabilities: Capabilities, given: Mapping[str, Any] | None = None, *, question: str = _QUESTION
) -> str | None:
    context = shape_context(None, capabilities) | dict(given or {})
    messages = shaped([Said(role="user", content=question)], capabilities)
    rendering = template.render(messages, add_generation_prompt=True, **context)
    return rendering.text if rendering.error is None else None
