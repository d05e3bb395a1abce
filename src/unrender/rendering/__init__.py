r"""Loads templates and renders them in a sandbox with limits.

A template is loaded from a path, a hub id, a source or a function. Rendering a conversation returns text or an error message.

`Template` compiles a source once for many renderings, and `loading` finds the source. `sandbox` is Jinja with a cost for every operation:
`template_ast` rewrites operations that Jinja doesn't report, `cost_guards` measures operations in advance, `cost` sums up their cost, and
`printing` removes memory addresses from printed values.

>>> template = Template("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
>>> template.render([{"role": "user", "content": "Hello"}]).text
'[user] Hello\n'
>>> template = Template("{{ raise_exception('no system role, please') }}")
>>> template.render([]).error
'no system role, please'

Rules:
- Everything that can grow is measured before it's created. Templates are untrusted programs, and Python code can't be interrupted from
  outside.
- Each rendering gets its own copies of the input, since templates may change lists and dicts.
- Errors are returned in `Rendering.error`, since the analysis renders many conversations that templates reject.
- Functions run without time limits, since they are the caller's own code.
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
"""Variables that are defined in every rendering."""
_TOO_DEEP = "the template is nested or recurses too deeply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """The result of rendering one conversation: text or an error."""

    text: str = ""
    """The rendered text. Empty if rendering failed or the template has no output."""
    error: str | None = None
    """The reason why rendering failed, or None. For `raise_exception`, the reason is the template's own message."""
    line: int | None = None
    """The line of the template that caused the error, starting at 1. None if the line is unknown."""
    exhausted: bool = False
    """True if a limit was exceeded. A retry would be just as expensive."""

    def unwrap(self) -> str:
        """Return the text. If rendering failed, raises `TemplateError` with the error message and the line number."""
        if self.error is None:
            return self.text
        place = "template" if self.line is None else f"template, line {self.line}"
        raise TemplateError(f"{place}: {self.error}")


class Template:
    """A chat template: Jinja source that renders a conversation as a prompt, with its tokens and limits.

    Raises `TemplateError` with the line number if the source doesn't compile or is too long. `clock` is used for `strftime_now`. Rendering
    is thread-safe, deterministic for a given clock, and doesn't modify its arguments. Two templates are equal if they render every
    conversation identically.
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
        # Special tokens that the template doesn't use are dropped, so that equivalent templates compare equal.
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

        `context` contains additional variables, which override the special tokens. Errors in the template are returned in the result.
        Raises `RequestError` with the variable's name for values that are nested too deeply, contain themselves, or can't be copied.
        """
        variables = {
            "documents": None,
            "bos_token": self.bos_token,
            "eos_token": self.eos_token,
            **{name: copied(value, name) for name, value in (self.special_tokens | context).items()},
            "messages": copied(messages, "messages"),
            # Tools are the largest variable, so they're copied only for templates that use them.
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
        """Return the same template with other rendering limits, without compiling it again."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), limits=limits)
        return other

    def stopped(self) -> Template:
        """Return the same template with a fixed time, so that renderings don't depend on the current time."""
        if "strftime_now" not in self.source:
            return self
        now = self._clock()
        return Template(self.source, **self._tokens, clock=lambda: now, limits=self.limits)

    @cached_property
    def digest(self) -> str:
        """A hash of everything that affects a rendering, except the clock and the conversation."""
        more = [self.special_tokens] if self.special_tokens else []
        parts = json.dumps([self.source, self.bos_token, self.eos_token, *more])
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def today(self) -> str:
        """The current date according to the template's clock, e.g. `2026-01-31`."""
        return self._clock().date().isoformat()

    @property
    def variables(self) -> frozenset[str]:
        """Variables that a caller may set, e.g. `enable_thinking`. Excludes variables that the template sets before it reads them."""
        return self.facts.variables - (self.facts.own - STANDARD_VARIABLES)

    @property
    def reads(self) -> frozenset[str]:
        """All variables that may come from the caller, even if the template's author didn't intend this, e.g. `y` in `{% if x %}{% set y =
        1 %}{% endif %}{{ y }}`.
        """
        return self.facts.variables

    @property
    def facts(self) -> Facts:
        """Static facts about the template's source."""
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
"""Matches Go template syntax, e.g. `{{ .Prompt }}`, `{{- range .Messages }}` or `{{ $last }}`."""
_NO_GO = "use the model's own template, from its tokenizer_config.json or its GGUF file"


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
    """Return a copy that consists of plain lists and dicts. Templates may append to lists and look up keys in dicts.

    Raises `RequestError` for values that are nested too deeply, contain themselves, or can't be copied. `where` is the location in the
    error message.
    """
    result: dict[Any, Any] = {where: value}
    waiting: list[tuple[Any, int]] = [(result, 0)]
    count = 0
    while waiting:
        holder, depth = waiting.pop()
        # It's safe to replace the value of an existing key during iteration.
        for key, item in holder.items() if type(holder) is dict else enumerate(holder):
            kind = type(item)
            if kind in _ATOMS:
                continue
            own = holder[key] = item.copy() if kind is dict or kind is list else _copied_alone(item, where)
            if type(own) is dict or type(own) is list:
                waiting.append((own, depth + 1))
                count += 1
                # The depth limit also rejects endless nesting, such as `a = []; a.append(a)`.
                if depth > MAX_DEPTH:
                    levels = f"{MAX_DEPTH} levels of lists and objects"
                    raise RequestError(f"{where}: expected at most {levels}, found more")
                if count > MAX_VALUES:
                    raise RequestError(f"{where}: expected at most {MAX_VALUES} lists and objects, found more")
    return result[where]


def _copied_alone(item: Any, where: str) -> Any:
    """Copy a list or mapping, but not its items. Other values are deep-copied."""
    if isinstance(item, Mapping):
        return dict(item)
    if isinstance(item, list | tuple):
        return list(item)
    try:
        return copy.deepcopy(item)
    except Exception as error:
        raise RequestError(f"{where}: expected a value that can be copied, found {type(item).__name__}") from error


# Templates that are functions.

RenderFunction = Callable[..., str]
"""A function that renders messages. Other variables, such as `tools` and `add_generation_prompt`, are passed to it as keyword arguments."""
_FIELDS = frozenset({"reasoning_content", "reasoning", "thinking"})
"""Fields of messages that may contain reasoning."""


class FunctionTemplate(Template):
    """A template that is a function. Two templates are equal if they have the same function, variables, tokens and limits.

    `variables` contains names that the function accepts in its `**keywords`. Raises `TemplateError` if `renderer` isn't a function, doesn't
    take messages, or doesn't accept one of the variables.
    """

    def __init__(
        self,
        renderer: RenderFunction,
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
        """Call the function with copies of the variables for which it has parameters.

        Exceptions that the function raises are returned in the result.
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
        """A random string, because functions can't be hashed. Analyses of functions are therefore not cached on disk."""
        return secrets.token_hex(32)

    @property
    def facts(self) -> Facts:
        """The names and defaults of the function's parameters."""
        return self._known

    @property
    def _key(self) -> tuple[Any, ...]:
        return self._renderer, self._variables, self.bos_token, self.eos_token, self.limits

    def __reduce__(self) -> tuple[Any, ...]:
        tokens = {"bos_token": self.bos_token, "eos_token": self.eos_token}
        return partial(FunctionTemplate, self._renderer, variables=self._variables, **tokens, limits=self.limits), ()

    def __repr__(self) -> str:
        return f"FunctionTemplate({self._renderer!r:.60})"


def _parameters(renderer: RenderFunction, variables: Sequence[str]) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Return the names and defaults of a function's parameters, except the parameter for the messages."""
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
