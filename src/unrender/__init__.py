"""Chat templates, read backwards: formats, streaming parsers, grammars.

>>> from unrender import ChatTemplate
>>> ChatTemplate.from_string("{{ messages[-1].content }}").prepare([{"role": "user", "content": "Hi"}]).prompt
'Hi'

Names are imported when they are first used, so that `import unrender` stays light.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrender.chat_template import ChatTemplate, Turn
    from unrender.emit.triggers import Trigger, TriggerKind
    from unrender.errors import (
        FormatError,
        FormatVersionError,
        GrammarError,
        MalformedOutput,
        MessageError,
        SchemaWarning,
        TemplateError,
        UnrenderError,
    )
    from unrender.format import Format
    from unrender.messages import CallStatus, Message, Request, Tool, ToolCall, ToolChoice
    from unrender.parsing.events import (
        ArgumentsText,
        ContentText,
        Event,
        Malformed,
        MessageFinished,
        ReasoningText,
        ToolCallFinished,
        ToolCallStarted,
    )
    from unrender.parsing.parser import Parser

__all__ = [
    "ArgumentsText",
    "CallStatus",
    "ChatTemplate",
    "ContentText",
    "Event",
    "Format",
    "FormatError",
    "FormatVersionError",
    "GrammarError",
    "Malformed",
    "MalformedOutput",
    "Message",
    "MessageError",
    "MessageFinished",
    "Parser",
    "ReasoningText",
    "Request",
    "SchemaWarning",
    "TemplateError",
    "Tool",
    "ToolCall",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolChoice",
    "Trigger",
    "TriggerKind",
    "Turn",
    "UnrenderError",
]

_MODULES = MappingProxyType(
    {
        "unrender.chat_template": ("ChatTemplate", "Turn"),
        "unrender.emit.triggers": ("Trigger", "TriggerKind"),
        "unrender.errors": (
            "FormatError",
            "FormatVersionError",
            "GrammarError",
            "MalformedOutput",
            "MessageError",
            "SchemaWarning",
            "TemplateError",
            "UnrenderError",
        ),
        "unrender.format": ("Format",),
        "unrender.messages": ("CallStatus", "Message", "Request", "Tool", "ToolCall", "ToolChoice"),
        "unrender.parsing.events": (
            "ArgumentsText",
            "ContentText",
            "Event",
            "Malformed",
            "MessageFinished",
            "ReasoningText",
            "ToolCallFinished",
            "ToolCallStarted",
        ),
        "unrender.parsing.parser": ("Parser",),
    }
)


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            value = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
