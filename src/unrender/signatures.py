"""Checks the arguments of public functions, and suggests names for misspelled ones.

The annotations of a function say what it takes:

>>> @checked
... def shout(text: str, times: int = 1) -> str:
...     return text.upper() * times
>>> shout(["hello"])
Traceback (most recent call last):
unrender.errors.RequestError: text: expected text, found ['hello']

Rules: annotations are read on the first call. After that, an argument costs one `isinstance`. The items of lists and mappings are checked
only after the function failed. An annotation that isn't in the tables below, such as `Any` or a protocol, admits every value.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import islice
from os import PathLike
from types import FunctionType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, is_typeddict

from unrender.errors import RequestError, UnrenderError
from unrender.limits import MAX_LISTED

F = TypeVar("F", bound=Callable[..., Any])

_MISTAKES = (TypeError, AttributeError, ValueError, LookupError)
"""Exceptions that wrong items may cause inside a function."""
_SEEN = 1000
"""Maximum number of items to check after a failure."""
_PLAIN = (str, bytes, int, float, list, tuple, dict, PathLike)
"""Types whose values are shown in error messages."""


class _Test:
    """A test of a value. `isinstance` runs it like a test for a class."""

    def __init__(self, admits: Callable[[Any], bool]) -> None:
        self._admits = admits

    def __instancecheck__(self, value: Any) -> bool:
        return self._admits(value)


@dataclass(frozen=True, slots=True)
class _Kind:
    """The values that one alternative of an annotation admits."""

    expected: str
    types: tuple[Any, ...] = ()
    """Classes and tests, of which one must fit. Common classes come first, because they are faster."""
    example: str = ""
    """Code to use instead. `{}` stands for the text or path that was passed."""
    words: tuple[str, ...] = ()
    """The texts that are admitted, if only some are."""
    items: ast.expr | None = None
    """The annotation of the items."""


def _is_iterable(value: Any) -> bool:
    """Return True for any iterable except text and bytes."""
    return hasattr(value, "__iter__") and not isinstance(value, str | bytes | bytearray)


def _is_sized(value: Any) -> bool:
    return _is_iterable(value) and hasattr(value, "__len__")


def _is_list(value: Any) -> bool:
    """Return True for lists and arrays, and for sets, whose order doesn't matter to some functions."""
    return _is_sized(value) and not isinstance(value, Mapping)


def _is_tokenizer(value: Any) -> bool:
    return callable(getattr(value, "decode", None)) and not isinstance(value, bytes)


_ANY = _Kind("anything", (object,))
_LIST = _Kind("a list", (list, tuple, _Test(_is_list)))
_KINDS: Mapping[str, _Kind] = {
    "Any": _ANY,
    "str": _Kind("text", (str,)),
    "bool": _Kind("True or False", (bool,)),
    "int": _Kind("an integer", (int, _Test(lambda value: hasattr(value, "__index__")))),
    "float": _Kind("a number", (int, float, _Test(lambda value: hasattr(value, "__float__")))),
    "JsonSchema": _Kind("a JSON Schema", (dict, Mapping, bool)),
    "bytes": _Kind("bytes", (bytes,)),
    "PathLike": _Kind("a path", (PathLike,)),
    "Mapping": _Kind("a mapping", (dict, Mapping)),
    "Sequence": _LIST,
    "Collection": _Kind("a list", (list, tuple, _Test(_is_sized))),
    "list": _LIST,
    "tuple": _LIST,
    "Iterable": _Kind("an iterable", (list, tuple, _Test(_is_iterable))),
    "AsyncIterable": _Kind("an async iterable", (_Test(lambda value: hasattr(value, "__aiter__")),)),
    "Callable": _Kind("a function", (FunctionType, _Test(callable))),
    **dict.fromkeys(
        ("Decoder", "Decodes", "Tokenizer"),
        _Kind("a tokenizer", (_Test(_is_tokenizer),)),
    ),
}
"""Maps builtin and abstract types to the values that they admit."""
_ITEMS = {"str": " of texts", "int": " of integers"}
"""Maps annotations of items to words for a list of these."""
_CLASSES: Mapping[str, str] = {
    "ChatTemplate": "ChatTemplate.from_pretrained({})",
    "LoadedTemplates": "ChatTemplate.from_pretrained({0}), ChatTemplate.from_file({0}) or ChatTemplate.from_string({0})",
    "Turn": "template.prepare(messages)",
    "Parser": "turn.parser()",
    "Format": "template.format or Format.from_json(…)",
    "Message": "turn.parse({})",
    "Policy": "Policy()",
    "Limits": "Limits()",
    "Grammar": "a grammar made with unrender.grammar",
    "Request": "turn.request",
    "Explanation": "explain(turn, {})",
    "Completion": "Completion(model=…)",
    "Usage": "Usage(prompt_tokens=…, completion_tokens=…)",
}
"""Maps classes to examples of how to get an object. They are checked even where they are imported only for type checkers."""
_EXAMPLES: Mapping[str, str] = {
    "messages": '[{{"role": "user", "content": {}}}]',
    "batch": '{{"text": [{}]}}',
    "record": '{{"text": {}}}',
    "prompt": "prepare(messages) for a conversation",
}
"""Maps names of arguments to examples that describe them better than their class does."""


def checked(function: F) -> F:
    """Return the function with a check of its arguments.

    An argument that doesn't fit its annotation raises `RequestError`, which names the argument, and says what to pass. For a class, the
    arguments of its constructor are checked.
    """
    if isinstance(function, type):
        function.__init__ = checked(vars(function)["__init__"])  # type: ignore[misc]
        return cast("F", function)
    return _calling(function, _Signature(function))


def checked_late(function: F) -> F:
    """Return the function with a check of its arguments after a failure, for functions that are called for each token."""
    return _calling(function, _Signature(function, late=True))


def _calling(function: F, signature: _Signature) -> F:
    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        # `map` needs no bytecode per argument, which matters to functions that are called for each chunk.
        types, by_name = signature.types
        fits = all(map(isinstance, values, types))
        for name, value in named.items():
            fits = fits and isinstance(value, by_name.get(name, object))
        if not fits:
            signature.check(values, named)
        try:
            return function(*values, **named)
        except _MISTAKES as error:
            if not isinstance(error, UnrenderError):
                signature.check(values, named, items=True)
            raise

    return cast("F", call)


class _Signature:
    """The arguments of a function. With `late`, they are checked only after a failure."""

    def __init__(self, function: Any, *, late: bool = False) -> None:
        self._function, self._late = function, late

    @cached_property
    def _arguments(self) -> Mapping[str, _Argument]:
        """The arguments by name, in order."""
        code, hints = self._function.__code__, self._function.__annotations__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        annotations = {name: ast.parse(hints.get(name, "Any"), mode="eval").body for name in names}
        return {name: _Argument(name, hint, self._function.__globals__) for name, hint in annotations.items()}

    @cached_property
    def types(self) -> tuple[tuple[tuple[Any, ...], ...], Mapping[str, tuple[Any, ...]]]:
        """The types of the arguments to check before a call, in order and by name."""
        types = {} if self._late else {name: argument.types for name, argument in self._arguments.items()}
        return tuple(types.values()), types

    def check(self, values: tuple[Any, ...], named: Mapping[str, Any], *, items: bool = False) -> None:
        """Raise `RequestError` if an argument isn't admitted, or with `items`, one of its items."""
        for name, value in {**dict(zip(self._arguments, values, strict=False)), **named}.items():
            if argument := self._arguments.get(name):
                (argument.check_with_items if items else argument.check)(value)


class _Argument:
    """The values that an argument may have."""

    def __init__(self, name: str, annotation: ast.expr, scope: Mapping[str, Any]) -> None:
        self.name, self.scope = name, scope
        self.kinds = [*_kinds(annotation, scope)]
        self.types = tuple(one for kind in self.kinds for one in kind.types)

    def check(self, value: Any) -> None:
        """Raise `RequestError` if the value isn't admitted."""
        if isinstance(value, self.types):
            return
        kinds = [kind for kind in self.kinds if kind.expected != "None"]
        expected = " or ".join(dict.fromkeys(kind.expected for kind in kinds))
        text = isinstance(value, str | PathLike)
        quoted = json.dumps(str(value))[:60] if text else '"…"'
        end = did_you_mean(str(value), [word for kind in kinds for word in kind.words]) if text else ""
        examples = [_EXAMPLES.get(self.name, ""), *(kind.example for kind in kinds)]
        if text and any(isinstance(kind.items, ast.Name) and kind.items.id == "str" for kind in kinds):
            examples.append("[{}]")
        for example in filter(None, examples) if not end else ():
            end = f"; use {example.format(quoted)}"
            break
        raise RequestError(f"{self.name}: expected {expected}, found {found(value)}{end}")

    def check_with_items(self, value: Any) -> None:
        """Raise `RequestError` if the value, or one of the first items of a list or mapping, isn't admitted."""
        self.check(value)
        for kind in self.kinds:
            if kind.items is not None and isinstance(value, list | tuple | Mapping):
                for key, item in islice(value.items() if isinstance(value, Mapping) else enumerate(value), _SEEN):
                    _Argument(f"{self.name}[{key!r:.60}]", kind.items, self.scope).check_with_items(item)


def _kinds(annotation: ast.expr, scope: Mapping[str, Any]) -> Iterator[_Kind]:
    match annotation:
        case ast.BinOp(left=left, right=right):
            yield from _kinds(left, scope)
            yield from _kinds(right, scope)
        case ast.Constant(value=None):
            yield _Kind("None", (type(None),))
        case ast.Subscript(value=ast.Name(id="Literal"), slice=inner):
            yield _words(map(ast.literal_eval, inner.elts if isinstance(inner, ast.Tuple) else [inner]))
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in _KINDS and name != "Callable":
            kind = _KINDS[name]
            # The items of `Mapping[str, int]` are its values, and those of `tuple[str, ...]` its parts.
            items = inner.elts[-1 if name == "Mapping" else 0] if isinstance(inner, ast.Tuple) else inner
            yield replace(
                kind, expected=kind.expected + _ITEMS.get(ast.unparse(items), "") * (name != "PathLike"), items=items
            )
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)) if name in _KINDS:
            yield _KINDS[name]
        case ast.Name(id=name) if get_origin(scope.get(name)) is Literal:
            yield _words(get_args(scope[name]))
        case ast.Name(id=name) if _is_class(scope.get(name)):
            yield _Kind(f"a {name}", (scope[name],), example=_CLASSES.get(name, ""))
        case ast.Name(id=name) if isinstance(scope.get(name), UnionType) and all(map(_is_class, get_args(scope[name]))):
            yield _Kind(f"a {name}", get_args(scope[name]))
        case ast.Name(id=name) if name in _CLASSES:
            # The class is compared by name, since importing it for the check could take longer than the function.
            named = _Test(lambda value: name in [one.__name__ for one in type(value).__mro__])
            yield _Kind(f"a {name}", (named,), example=_CLASSES[name])
        case _:
            yield _ANY


def _is_class(value: Any) -> bool:
    """Return True for classes, but not for protocols and typed dicts, of which there are no instances."""
    return isinstance(value, type) and not getattr(value, "_is_protocol", False) and not is_typeddict(value)


def _words(values: Iterable[Any]) -> _Kind:
    words = tuple(values)
    texts = tuple(word for word in words if isinstance(word, str))
    return _Kind(" or ".join(map(repr, words)), (_Test(lambda value: value in words),), words=texts)


def found(value: Any) -> str:
    """Return a short description of a value for an error message: plain data as it is written, and the class of any other object.

    >>> found([1]), found(object())
    ('[1]', 'object')
    """
    return f"{value!r:.60}" if value is None or isinstance(value, _PLAIN) else type(value).__name__


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known name that is most similar to a misspelled one, or "" if the similarity, from 0 to 1, is below `cutoff`."""
    from difflib import get_close_matches  # noqa: PLC0415 -- needed only after a mistake

    return next(iter(get_close_matches(name, [*known], n=1, cutoff=cutoff)), "")


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return a suggestion to append to an error message, or "" if no known name is similar.

    >>> did_you_mean("requierd", ["auto", "none", "required"])
    "; did you mean 'required'?"
    """
    meant = nearest(name, known, cutoff=cutoff)
    return f"; did you mean {meant!r}?" if meant else ""


def expected_one_of(where: str, known: Iterable[str], value: Any, *, what: str = "") -> str:
    """Return the error message for a value that isn't one of the known names.

    `where` is the name of the argument or the path, and `what` says what is named.

    >>> expected_one_of("engine", ["vllm", "sglang"], "vlm")
    "engine: expected one of ['vllm', 'sglang'], found 'vlm'; did you mean 'vllm'?"
    """
    names = list(known)
    listed = names if len(names) <= MAX_LISTED else [*names[:MAX_LISTED], "…"]
    return f"{where}: expected one of {what}{listed}, found {value!r:.60}{did_you_mean(str(value), names)}"
