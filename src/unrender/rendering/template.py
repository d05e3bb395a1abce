r"""Renders a chat template, whose source is Jinja or a function, over copies of the input and within limits.

>>> template = Template("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
>>> template.render([{"role": "user", "content": "Hello"}]).text
'[user] Hello\n'
>>> template = Template("{{ raise_exception('no system role, please') }}")
>>> template.render([]).error
'no system role, please'

Rules:
- A rendering sees copies of all that it is given, since templates may change lists and dicts.
- A rendering that fails is a value (`Rendering.error`), since analysis asks templates many questions that they refuse.
- A function is the caller's own code. It runs without the limits of time that a source has.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from types import MappingProxyType, TracebackType
from typing import Any

import jinja2

from unrender.errors import RequestError, TemplateError
from unrender.limits import MAX_DEPTH, MAX_REMARK, MAX_VALUES, STANDARD, Limits
from unrender.rendering.cost import CostBudget, Exhausted
from unrender.rendering.printing import without_addresses
from unrender.rendering.sandbox import Sandbox
from unrender.rendering.template_ast import Facts

STANDARD_VARIABLES = frozenset({"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"})
"""Variables that every rendering has, independent of the caller and the template."""
_TOO_DEEP = "the template is nested or recurses too deeply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """The result of rendering one conversation: a text, or an error."""

    text: str = ""
    """The rendered text. It is empty after an error, and where the template writes nothing."""
    error: str | None = None
    """None when the rendering succeeded, else the reason: for `raise_exception` the template's own words."""
    line: int | None = None
    """The line of the template that failed, counted from 1, when it is known."""
    exhausted: bool = False
    """The error is a limit that was reached; rendering again would cost as much again."""

    def unwrap(self) -> str:
        """Return the text. Raises `TemplateError` with the error and its line."""
        if self.error is None:
            return self.text
        place = "template" if self.line is None else f"template, line {self.line}"
        raise TemplateError(f"{place}: {self.error}")


class Template:
    """A chat template: Jinja source that writes a conversation down for a model, with its tokens and limits.

    Raises `TemplateError`, naming the line, when the source does not compile or is longer than the limits allow. The
    clock answers `strftime_now`. Rendering is deterministic given the clock, thread-safe, and changes no argument.
    Templates are equal when they render alike.
    """

    def __init__(
        self,
        source: str,
        *,
        bos_token: str = "",
        eos_token: str = "",
        special_tokens: Mapping[str, Any] = MappingProxyType({}),
        clock: Callable[[], datetime] = datetime.now,
        limits: Limits = STANDARD,
    ) -> None:
        self.source = source
        self.bos_token = bos_token
        self.eos_token = eos_token
        self.limits = limits
        self._clock = clock
        self._sandbox = Sandbox(clock, limits)
        self._compiled = _compile(self._sandbox, source, limits)
        # A token that the template does not read decides nothing, so templates with and without it are equal.
        read = self._sandbox.facts.variables
        self.special_tokens: dict[str, Any] = {
            name: special_tokens[name] for name in sorted(read & special_tokens.keys())
        }

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **context: Any,
    ) -> Rendering:
        """Render a conversation.

        `context` are further variables, which take precedence over the special tokens. No template raises an
        error here: it is in the result. Raises `RequestError`, naming the variable, for values that are nested too
        deeply, hold themselves or cannot be copied.
        """
        variables = {
            "documents": None,
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
            **{name: copied(value, name) for name, value in (self.special_tokens | context).items()},
            "messages": copied(messages, "messages"),
            # Tools are the largest of all; a template that does not read them cannot change them.
            "tools": copied(tools, "tools") if "tools" in self.reads else tools,
            "add_generation_prompt": add_generation_prompt,
        }
        try:
            return Rendering(text=self._run(variables))
        except Exhausted as error:
            return Rendering(error=str(error), line=self._line(error.__traceback__), exhausted=True)
        except (RecursionError, MemoryError) as error:
            return Rendering(error=_TOO_DEEP, line=self._line(error.__traceback__), exhausted=True)
        except jinja2.TemplateError as error:
            return self._failed(error.message or type(error).__name__, error)
        except Exception as error:  # noqa: BLE001 -- templates are programs, and fail as programs do
            return self._failed(f"{type(error).__name__}: {error}", error)

    def _failed(self, message: str, error: Exception) -> Rendering:
        message = without_addresses(message)
        shown = message if len(message) <= MAX_REMARK else f"{message[:MAX_REMARK]}…"
        return Rendering(error=shown, line=self._line(error.__traceback__))

    def limited(self, limits: Limits) -> Template:
        """Return the same template, without compiling it again, with other limits for its renderings."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), limits=limits)
        return other

    def stopped(self) -> Template:
        """Return the same template with a clock that stands still, so that the time changes nothing between renderings."""
        if "strftime_now" not in self.source:
            return self
        now = self._clock()
        return Template(self.source, **self._tokens, clock=lambda: now, limits=self.limits)

    @cached_property
    def digest(self) -> str:
        """A hash of everything that decides a rendering, except the clock and the conversation."""
        more = [self.special_tokens] if self.special_tokens else []
        parts = json.dumps([self.source, self.bos_token, self.eos_token, *more])
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def today(self) -> str:
        """The date by the template's clock, e.g. `2026-01-31`."""
        return self._clock().date().isoformat()

    @property
    def variables(self) -> frozenset[str]:
        """Names that a caller may set, e.g. `enable_thinking`: those that the template reads and does not set itself first."""
        return self.facts.variables - (self.facts.own - STANDARD_VARIABLES)

    @property
    def reads(self) -> frozenset[str]:
        """All names whose value may come from outside, be it by an oversight: `{% if x %}{% set y = 1 %}{% endif %}{{ y }}`."""
        return self.facts.variables

    @property
    def facts(self) -> Facts:
        """Facts that the source shows without a rendering."""
        return self._sandbox.facts

    def _run(self, variables: dict[str, Any]) -> str:
        self._sandbox.budget = CostBudget(self.limits)
        context = self._compiled.new_context(variables)
        parts, size = [], 0
        for part in self._compiled.root_render_func(context):
            parts.append(part)
            size += len(part)
            if size > self.limits.rendering_characters:
                raise Exhausted(f"the template writes more than {self.limits.rendering_characters} characters")
        return "".join(parts)

    def _line(self, traceback: TracebackType | None) -> int | None:
        line = None
        while traceback is not None:
            if traceback.tb_frame.f_globals.get("__jinja_template__") is self._compiled:
                line = self._compiled.get_corresponding_lineno(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.digest, self._clock, self.limits

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Template, self.source, **self._tokens, clock=self._clock, limits=self.limits), ()

    @property
    def _tokens(self) -> dict[str, Any]:
        return {"bos_token": self.bos_token, "eos_token": self.eos_token, "special_tokens": self.special_tokens}

    def __repr__(self) -> str:
        return f"Template({self.source!r:.60}, digest={self.digest[:12]!r})"


_GO = re.compile(r"\{\{-?\s*+(?:\.[A-Z]\w*|\$\w*|(?:if|range|with)\s[^}]*[.$]\w*)[^}]*\}\}")
"""`{{ .Prompt }}`, `{{- range .Messages }}`, `{{ $last }}`: no Jinja."""
_NO_GO = "take the model's own template, from its tokenizer_config.json or its GGUF file"


def _compile(sandbox: Sandbox, source: str, limits: Limits) -> jinja2.Template:
    if not isinstance(source, str):
        raise TemplateError(f"template: expected its source as text, found {type(source).__name__}")
    if len(source) > limits.template_characters:
        raise TemplateError(f"template: expected at most {limits.template_characters} characters, found {len(source)}")
    try:
        return sandbox.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        if found := _GO.search(source):
            written = f"expected Jinja, found {found[0]!r:.60}, which is Go's syntax, as in Ollama's Modelfile"
            raise TemplateError(f"template: {written}; {_NO_GO}") from None
        raise TemplateError(f"template, line {error.lineno}: {error.message}") from None
    except (RecursionError, MemoryError, SyntaxError):
        raise TemplateError(f"template: {_TOO_DEEP}") from None
    except (Exhausted, jinja2.TemplateError, ValueError, TypeError, AttributeError) as error:
        raise TemplateError(f"template: {error}") from None


_ATOMS = frozenset({str, int, float, bool, type(None)})


def copied(value: Any, where: str) -> Any:
    """Return a copy made of plain lists and dicts, since templates may add to lists and index dicts.

    Raises `RequestError`, naming `where`, for a value that is nested too deeply, holds itself, or cannot be copied.
    """
    result: dict[Any, Any] = {where: value}
    waiting: list[tuple[Any, int]] = [(result, 0)]
    count = 0
    while waiting:
        holder, depth = waiting.pop()
        # Putting a copy under a key that is there already does not disturb the walk over the keys.
        for key, item in holder.items() if type(holder) is dict else enumerate(holder):
            kind = type(item)
            if kind in _ATOMS:
                continue
            own = holder[key] = item.copy() if kind is dict or kind is list else _copied_alone(item, where)
            if type(own) is dict or type(own) is list:
                waiting.append((own, depth + 1))
                count += 1
                # `a = []; a.append(a)` ends here: it has no deepest level.
                if depth > MAX_DEPTH:
                    levels = f"{MAX_DEPTH} levels of lists and objects"
                    raise RequestError(f"{where}: expected at most {levels}, found more")
                if count > MAX_VALUES:
                    raise RequestError(f"{where}: expected at most {MAX_VALUES} lists and objects, found more")
    return result[where]


def _copied_alone(item: Any, where: str) -> Any:
    """Copy a list or an object without what is inside it; anything else as Python copies it."""
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, list | tuple):
        return list(item)
    try:
        return copy.deepcopy(item)
    except Exception as error:
        raise RequestError(f"{where}: expected a value that can be copied, found {type(item).__name__}") from error


# Templates that are functions.

Renderer = Callable[..., str]
"""Takes messages, and by name what it has parameters for: `tools`, `add_generation_prompt`, further variables."""
_FIELDS = frozenset({"reasoning_content", "reasoning", "thinking"})
"""Fields of messages that hold reasoning."""


class FunctionTemplate(Template):
    """A template that is a function. Two are equal if they have the same function and tokens.

    `variables` are variables that the function takes in its `**keywords`, without naming them. Raises `TemplateError`
    when it is not a function, takes no messages, or cannot take a switch.
    """

    def __init__(
        self,
        renderer: Renderer,
        *,
        variables: Collection[str] = (),
        bos_token: str = "",
        eos_token: str = "",
        limits: Limits = STANDARD,
    ) -> None:
        super().__init__("", bos_token=bos_token, eos_token=eos_token, limits=limits)
        self._renderer = renderer
        self._variables = tuple(variables)
        known, defaults = _parameters(renderer, self._variables)
        self._known = Facts(variables=known, string_constants=(), attribute_names=_FIELDS, defaults=defaults)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **context: Any,
    ) -> Rendering:
        """Call the function with copies of the variables that it has parameters for.

        An error that it raises is in the result.
        """
        given = {"tools": tools, "add_generation_prompt": add_generation_prompt, **context}
        variables = {name: copied(value, name) for name, value in given.items() if name in self.reads}
        try:
            return Rendering(text=self._written(copied(messages, "messages"), variables))
        except Exhausted as error:
            return Rendering(error=str(error), exhausted=True)
        except Exception as error:  # noqa: BLE001 -- code fails as code does, and refuses so
            return self._failed(f"{type(error).__name__}: {error}", error)

    def _written(self, messages: Any, variables: dict[str, Any]) -> str:
        text = self._renderer(messages, **variables)
        if not isinstance(text, str):
            raise TypeError(f"expected the renderer to return text, found {type(text).__name__}")
        if len(text) > self.limits.rendering_characters:
            raise Exhausted(f"the renderer writes more than {self.limits.rendering_characters} characters")
        return text

    @cached_property
    def digest(self) -> str:
        """A random text for each object: code cannot be hashed, so nothing about it may be found on disk."""
        return secrets.token_hex(32)

    @property
    def facts(self) -> Facts:
        """Names of the function's parameters, and their defaults."""
        return self._known

    @property
    def _key(self) -> tuple[Any, ...]:
        return self._renderer, self._variables, self.bos_token, self.eos_token, self.limits

    def __reduce__(self) -> tuple[Any, ...]:
        tokens = {"bos_token": self.bos_token, "eos_token": self.eos_token}
        return partial(FunctionTemplate, self._renderer, variables=self._variables, **tokens, limits=self.limits), ()

    def __repr__(self) -> str:
        return f"FunctionTemplate({self._renderer!r:.60})"


def _parameters(renderer: Renderer, variables: Sequence[str]) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Return the names and defaults of a function's parameters after the messages."""
    if not callable(renderer):
        raise TemplateError(f"renderer: expected a function, found {type(renderer).__name__}")
    try:
        _messages, *others = inspect.signature(renderer).parameters.values()
    except ValueError as error:
        raise TemplateError("renderer: expected a function that takes messages") from error
    named = {p.name: p.default for p in others if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_more = any(p.kind is p.VAR_KEYWORD for p in others)
    unknown = [name for name in variables if name not in named and not takes_more]
    if unknown:
        raise TemplateError(f"renderer: expected a parameter {unknown[0]!r}, found {sorted(named)}")
    defaults = {name: value for name, value in named.items() if value is not inspect.Parameter.empty}
    return frozenset({*named, *variables}), defaults
