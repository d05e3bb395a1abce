"""Types of arguments and results: tools, requests, media, triggers, spans and healings."""

from unrender.conversation.adapt import Media
from unrender.conversation.offer import ToolPrompt
from unrender.dialects.constraint import Engine
from unrender.dialects.triggers import Trigger, TriggerKind
from unrender.machine.past import Span
from unrender.messages.wire import CallStatus, Request, Tool, ToolChoice
from unrender.turn import Healing

__all__ = [
    "CallStatus",
    "Engine",
    "Healing",
    "Media",
    "Request",
    "Span",
    "Tool",
    "ToolChoice",
    "ToolPrompt",
    "Trigger",
    "TriggerKind",
]
