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
    from unrender.chat_template import ChatTemplate as ChatTemplate
    from unrender.conversation.adapt import Media as Media
    from unrender.conversation.offer import ToolPrompt as ToolPrompt
    from unrender.conversation.salvage import detect_format as detect_format
    from unrender.conversation.salvage import rescue as rescue
    from unrender.dialects.triggers import Trigger as Trigger
    from unrender.dialects.triggers import TriggerKind as TriggerKind
    from unrender.errors import ExportError as ExportError
    from unrender.errors import ExtendError as ExtendError
    from unrender.errors import FormatError as FormatError
    from unrender.errors import FormatVersionError as FormatVersionError
    from unrender.errors import FormatWarning as FormatWarning
    from unrender.errors import GrammarError as GrammarError
    from unrender.errors import ParseError as ParseError
    from unrender.errors import RequestError as RequestError
    from unrender.errors import SchemaWarning as SchemaWarning
    from unrender.errors import StateError as StateError
    from unrender.errors import TemplateError as TemplateError
    from unrender.errors import TemplateWarning as TemplateWarning
    from unrender.errors import TokenizerError as TokenizerError
    from unrender.errors import UnrenderError as UnrenderError
    from unrender.export import Exported as Exported
    from unrender.export import Target as Target
    from unrender.export import read_response_template as read_response_template
    from unrender.format import Format as Format
    from unrender.formats import declared_format as declared_format
    from unrender.limits import Limits as Limits
    from unrender.machine.events import ArgumentsText as ArgumentsText
    from unrender.machine.events import ContentText as ContentText
    from unrender.machine.events import Event as Event
    from unrender.machine.events import Malformed as Malformed
    from unrender.machine.events import MessageFinished as MessageFinished
    from unrender.machine.events import ReasoningText as ReasoningText
    from unrender.machine.events import ToolCallFinished as ToolCallFinished
    from unrender.machine.events import ToolCallStarted as ToolCallStarted
    from unrender.machine.policy import Policy as Policy
    from unrender.masks import AssistantMask as AssistantMask
    from unrender.masks import assistant_mask as assistant_mask
    from unrender.messages.wire import CallStatus as CallStatus
    from unrender.messages.wire import Message as Message
    from unrender.messages.wire import MessageBody as MessageBody
    from unrender.messages.wire import Request as Request
    from unrender.messages.wire import Tool as Tool
    from unrender.messages.wire import ToolBody as ToolBody
    from unrender.messages.wire import ToolCall as ToolCall
    from unrender.messages.wire import ToolCallBody as ToolCallBody
    from unrender.messages.wire import ToolChoice as ToolChoice
    from unrender.parser.answer_stream import AnswerStream as AnswerStream
    from unrender.parser.completions import ChoiceStream as ChoiceStream
    from unrender.parser.completions import ChunkBody as ChunkBody
    from unrender.parser.completions import Completion as Completion
    from unrender.parser.completions import CompletionBody as CompletionBody
    from unrender.parser.completions import Delta as Delta
    from unrender.parser.completions import Usage as Usage
    from unrender.parser.completions import deltas as deltas
    from unrender.parser.completions import finish_reason as finish_reason
    from unrender.parser.message import message_of as message_of
    from unrender.parser.prompt_tail import read_prefill as read_prefill
    from unrender.parser.streaming import Parser as Parser
    from unrender.parser.streaming import Span as Span
    from unrender.rendering.loading import LoadedTemplates as LoadedTemplates
    from unrender.turn import Healing as Healing
    from unrender.turn import Turn as Turn

_HOMES = {
    "unrender.chat_template": "ChatTemplate",
    "unrender.dialects.triggers": "Trigger TriggerKind",
    "unrender.errors": (
        "ExportError ExtendError FormatError FormatVersionError FormatWarning GrammarError ParseError RequestError "
        "SchemaWarning StateError TemplateError TemplateWarning TokenizerError UnrenderError"
    ),
    "unrender.export": "Exported Target read_response_template",
    "unrender.format": "Format",
    "unrender.formats": "declared_format",
    "unrender.conversation.offer": "ToolPrompt",
    "unrender.limits": "Limits",
    "unrender.machine.events": (
        "ArgumentsText ContentText Event Malformed MessageFinished ReasoningText ToolCallFinished ToolCallStarted"
    ),
    "unrender.machine.policy": "Policy",
    "unrender.masks": "AssistantMask assistant_mask",
    "unrender.messages.wire": "CallStatus Message MessageBody Request Tool ToolBody ToolCall ToolCallBody ToolChoice",
    "unrender.parser.answer_stream": "AnswerStream",
    "unrender.parser.completions": "ChoiceStream ChunkBody Completion CompletionBody Delta Usage deltas finish_reason",
    "unrender.parser.message": "message_of",
    "unrender.parser.prompt_tail": "read_prefill",
    "unrender.parser.streaming": "Parser Span",
    "unrender.rendering.loading": "LoadedTemplates",
    "unrender.conversation.adapt": "Media",
    "unrender.conversation.salvage": "detect_format rescue",
    "unrender.turn": "Healing Turn",
}
"""The modules that define the public names, each with its names."""
__all__ = sorted(name for names in _HOMES.values() for name in names.split())  # noqa: PLE0605 -- the names are written once


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(importlib.import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
