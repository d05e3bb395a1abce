"""Streaming parsers and grammars for model output, derived from chat templates.

>>> from unrender import ChatTemplate
>>> ChatTemplate.from_string("{{ messages[-1].content }}").prepare([{"role": "user", "content": "Hi"}]).prompt
'Hi'

Names are imported on first use, so that `import unrender` is fast.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from unrender.version import __version__ as __version__

if sys.version_info < (3, 11):  # noqa: UP036 -- a checkout can be imported without pip, which would refuse it
    raise ImportError("unrender needs Python 3.11 or newer, found " + sys.version.split()[0])

if TYPE_CHECKING:
    from unrender.chat_template import ChatTemplate as ChatTemplate
    from unrender.dialects import Constraint as Constraint
    from unrender.errors import GrammarError as GrammarError
    from unrender.errors import ParseError as ParseError
    from unrender.errors import RequestError as RequestError
    from unrender.errors import TemplateError as TemplateError
    from unrender.errors import UnrenderError as UnrenderError
    from unrender.errors import UnrenderWarning as UnrenderWarning
    from unrender.format import Format as Format
    from unrender.limits import Limits as Limits
    from unrender.machine import ArgumentsText as ArgumentsText
    from unrender.machine import ContentText as ContentText
    from unrender.machine import Event as Event
    from unrender.machine import Malformed as Malformed
    from unrender.machine import MessageFinished as MessageFinished
    from unrender.machine import Policy as Policy
    from unrender.machine import ReasoningText as ReasoningText
    from unrender.machine import ToolCallFinished as ToolCallFinished
    from unrender.machine import ToolCallStarted as ToolCallStarted
    from unrender.messages import Message as Message
    from unrender.messages import ToolCall as ToolCall
    from unrender.parser import AnswerStream as AnswerStream
    from unrender.parser.streaming import Parser as Parser
    from unrender.turn import Turn as Turn

_HOMES = {
    "unrender.chat_template": "ChatTemplate",
    "unrender.dialects": "Constraint",
    "unrender.errors": "GrammarError ParseError RequestError TemplateError UnrenderError UnrenderWarning",
    "unrender.format": "Format",
    "unrender.limits": "Limits",
    "unrender.machine": "ArgumentsText ContentText Event Malformed MessageFinished Policy ReasoningText ToolCallFinished ToolCallStarted",
    "unrender.messages": "Message ToolCall",
    "unrender.parser": "AnswerStream",
    "unrender.parser.streaming": "Parser",
    "unrender.turn": "Turn",
}
"""Maps each module to the public names that it defines."""
__all__ = sorted(name for names in _HOMES.values() for name in names.split())  # noqa: PLE0605 -- built from `_HOMES`


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            value = globals()[name] = getattr(importlib.import_module(module), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
