"""Chat templates, read backwards: formats, streaming parsers, grammars.

>>> from unrender import ChatTemplate
>>> ChatTemplate.from_string("{{ messages[-1].content }}").prepare([{"role": "user", "content": "Hi"}]).prompt
'Hi'

Names are imported when they are first used, so that `import unrender` stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from unrender.version import __version__ as __version__

if TYPE_CHECKING:
    from unrender.chat_template import ChatTemplate
    from unrender.conversation.adapt import Media
    from unrender.conversation.offer import Injection
    from unrender.conversation.salvage import detect_format, rescue
    from unrender.dialects.triggers import Trigger, TriggerKind
    from unrender.errors import (
        ExportError,
        ExtendError,
        FormatError,
        FormatVersionError,
        FormatWarning,
        GrammarError,
        MalformedOutput,
        MessageError,
        SchemaWarning,
        StateError,
        TemplateError,
        TemplateWarning,
        TokenizerError,
        UnrenderError,
    )
    from unrender.export import Exported, Target, read_response_template
    from unrender.format import Format
    from unrender.formats import declared_format
    from unrender.limits import Limits
    from unrender.machine.events import (
        ArgumentsText,
        ContentText,
        Event,
        Malformed,
        MessageFinished,
        ReasoningText,
        ToolCallFinished,
        ToolCallStarted,
    )
    from unrender.machine.policy import Policy
    from unrender.masks import AssistantMask, assistant_mask
    from unrender.messages.wire import (
        CallStatus,
        Message,
        MessageBody,
        Request,
        Tool,
        ToolBody,
        ToolCall,
        ToolCallBody,
        ToolChoice,
    )
    from unrender.parser.completions import (
        ChoiceStream,
        ChunkBody,
        Completion,
        CompletionBody,
        Delta,
        Usage,
        deltas,
        finish_reason,
    )
    from unrender.parser.message import message_of
    from unrender.parser.prompt_tail import prefill
    from unrender.parser.streaming import Parser, Span
    from unrender.rendering.loading import LoadedTemplates
    from unrender.turn import Healing, Turn

__all__ = [
    "ArgumentsText",
    "AssistantMask",
    "CallStatus",
    "ChatTemplate",
    "ChoiceStream",
    "ChunkBody",
    "Completion",
    "CompletionBody",
    "ContentText",
    "Delta",
    "Event",
    "ExportError",
    "Exported",
    "ExtendError",
    "Format",
    "FormatError",
    "FormatVersionError",
    "FormatWarning",
    "GrammarError",
    "Healing",
    "Injection",
    "Limits",
    "LoadedTemplates",
    "Malformed",
    "MalformedOutput",
    "Media",
    "Message",
    "MessageBody",
    "MessageError",
    "MessageFinished",
    "Parser",
    "Policy",
    "ReasoningText",
    "Request",
    "SchemaWarning",
    "Span",
    "StateError",
    "Target",
    "TemplateError",
    "TemplateWarning",
    "TokenizerError",
    "Tool",
    "ToolBody",
    "ToolCall",
    "ToolCallBody",
    "ToolCallFinished",
    "ToolCallStarted",
    "ToolChoice",
    "Trigger",
    "TriggerKind",
    "Turn",
    "UnrenderError",
    "Usage",
    "assistant_mask",
    "declared_format",
    "deltas",
    "detect_format",
    "finish_reason",
    "message_of",
    "prefill",
    "read_response_template",
    "rescue",
]

_HOMES = {
    "unrender.chat_template": "ChatTemplate",
    "unrender.dialects.triggers": "Trigger TriggerKind",
    "unrender.errors": (
        "ExportError ExtendError FormatError FormatVersionError FormatWarning GrammarError MalformedOutput MessageError "
        "SchemaWarning StateError TemplateError TemplateWarning TokenizerError UnrenderError"
    ),
    "unrender.export": "Exported Target read_response_template",
    "unrender.format": "Format",
    "unrender.formats": "declared_format",
    "unrender.conversation.offer": "Injection",
    "unrender.limits": "Limits",
    "unrender.machine.events": (
        "ArgumentsText ContentText Event Malformed MessageFinished ReasoningText ToolCallFinished ToolCallStarted"
    ),
    "unrender.machine.policy": "Policy",
    "unrender.masks": "AssistantMask assistant_mask",
    "unrender.messages.wire": "CallStatus Message MessageBody Request Tool ToolBody ToolCall ToolCallBody ToolChoice",
    "unrender.parser.completions": "ChoiceStream ChunkBody Completion CompletionBody Delta Usage deltas finish_reason",
    "unrender.parser.message": "message_of",
    "unrender.parser.prompt_tail": "prefill",
    "unrender.parser.streaming": "Parser Span",
    "unrender.rendering.loading": "LoadedTemplates",
    "unrender.conversation.adapt": "Media",
    "unrender.conversation.salvage": "detect_format rescue",
    "unrender.turn": "Healing Turn",
}
"""The modules that define the public names, each with its names."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(importlib.import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
