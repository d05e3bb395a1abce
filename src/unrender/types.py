"""Types of arguments and results: tools, requests, media, triggers, spans and healings."""

from unrender.dialects import Engine, Trigger, TriggerKind
from unrender.machine.frames import Span
from unrender.messages import CallStatus, Media, Request, Tool, ToolChoice, ToolPrompt
from unrender.turn import Healing, ParsedAnswer

__all__ = [
    "CallStatus",
    "Engine",
    "Healing",
    "Media",
    "ParsedAnswer",
    "Request",
    "Span",
    "Tool",
    "ToolChoice",
    "ToolPrompt",
    "Trigger",
    "TriggerKind",
]
