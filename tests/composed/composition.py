"""Templates composed of parts: each frame, reasoning style and call style, with one oddity.

Strategy: a seed draws the parts, so a number always gives the same template and can reproduce a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

from composed.parts import CALLS, FRAMES, ODDITIES, THOUGHTS, Calls, Frame, Thoughts


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The parts of a template."""

    frame: str
    thoughts: str
    calls: str
    oddity: str = ""

    def __str__(self) -> str:
        return " / ".join((self.frame, self.thoughts, self.calls, self.oddity or "plain"))


def drawn(seed: int) -> Recipe:
    """Return the recipe with this number."""
    random = Random(seed)
    return Recipe(
        frame=random.choice(list(FRAMES)),
        thoughts=random.choice(list(THOUGHTS)),
        calls=random.choice(list(CALLS)),
        oddity=random.choice(ODDITIES),
    )


def drawn_sources(seeds: Iterable[int]) -> dict[str, str]:
    """Return the sources of the templates with these numbers, by name."""
    return {f"composed {seed}": template(drawn(seed)) for seed in seeds}


def template(recipe: Recipe) -> str:
    """Return the source of a recipe's template."""
    return composed(FRAMES[recipe.frame], THOUGHTS[recipe.thoughts], CALLS[recipe.calls], recipe.oddity)


def composed(frame: Frame, thoughts: Thoughts, calls: Calls, oddity: str = "") -> str:
    """Return the source of the template made of these parts."""
    placed = {"⟦header⟧": frame.answer[0], "⟦end⟧": frame.answer[1]}
    return _Writer(frame, _placed(thoughts, placed), _placed(calls, placed), oddity).template()


def _placed(part: Any, placed: dict[str, str]) -> Any:
    """Return the part with the frame's texts in its placeholders."""
    changed = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, str):
            for place, text in placed.items():
                value = value.replace(place, text)
            changed[field.name] = value
    return replace(part, **changed)


def written(text: str) -> str:
    """Return Jinja that writes `text`. Expressions in «» are evaluated, and `{% %}` is kept."""
    pieces = re.split(r"(«.*?»|\{%.*?%\})", text)
    return "".join(_piece(piece) for piece in pieces if piece)


def _piece(piece: str) -> str:
    if piece.startswith("{%"):
        return piece
    inside = piece[1:-1] if piece.startswith("«") else json.dumps(piece, ensure_ascii=False)
    return "{{- " + inside + " -}}"


def _if(condition: str, yes: str, no: str = "") -> str:
    other = "{%- else -%}" + no if no else ""
    return "{%- if " + condition + " -%}" + yes + other + "{%- endif -%}" if yes or no else ""


_ALTERNATES = (
    "{%- if message.role in ('user', 'assistant') and not message.tool_calls -%}"
    "{%- if state.asked == (message.role == 'user') -%}"
    "{{- raise_exception('Roles must alternate user/assistant/user/assistant') -}}"
    "{%- endif -%}{%- set state.asked = message.role == 'user' -%}{%- endif -%}"
    "{%- if message.role"
)
_JOINED = "(message.content if message.content is string else message.content | map(attribute='text') | join(''))"
_FIELDS = {"thinking field": "message.thinking", "reasoning field": "message.reasoning"}


@dataclass(frozen=True, slots=True)
class _Writer:
    frame: Frame
    thoughts: Thoughts
    calls: Calls
    oddity: str

    def template(self) -> str:
        loop = "{%- for message in messages -%}" + self._message() + "{%- endfor -%}"
        if self.oddity == "macro":
            macro = "{%- macro turn(message, loop) -%}" + self._message() + "{%- endmacro -%}"
            loop = macro + "{%- for message in messages -%}{{- turn(message, loop) -}}{%- endfor -%}"
        if self.oddity == "alternates":
            loop = "{%- set state = namespace(asked=false) -%}" + loop.replace("{%- if message.role", _ALTERNATES, 1)
        before = "" if self.oddity == "tools before the last question" else self._tools()
        return written(self.frame.first) + before + loop + self._asks()

    def _tools(self) -> str:
        left, right = self.frame.system
        return _if("tools", written(left + "Tools: «tools | tojson»" + right))

    def _said(self) -> str:
        return {"trims content": "message.content | trim", "parts of content": _JOINED}.get(
            self.oddity, "message.content"
        )

    def _message(self) -> str:
        frame = self.frame
        said = "«" + self._said() + "»"
        question = written(frame.question[0] + said + frame.question[1])
        named = "«message.name or 'tool'»: " if self.oddity == "results name their call" else ""
        result = written(frame.result[0] + named + said + frame.result[1]) if any(frame.result) else question
        system = written(frame.system[0] + said + frame.system[1])
        refused = "{{- raise_exception('Only user, assistant and tool roles are known') -}}"
        if self.oddity == "no system":
            system = refused
        if self.oddity == "tools before the last question":
            question = _if("loop.last", self._tools()) + question
        other = refused if self.oddity == "refuses other roles" else question
        roles = {"assistant": self._answer(), "user": question, "tool": result, "system": system}
        cases = ("{%- elif message.role == '" + role + "' -%}" + text for role, text in roles.items())
        return "".join(cases).replace("elif", "if", 1) + "{%- else -%}" + other + "{%- endif -%}"

    def _answer(self) -> str:
        frame = self.frame
        end = frame.answer[1] + ("«eos_token»" if self.oddity == "eos after the end" else "")
        ends = written(end)
        if self.calls.ends_with is not None:
            ends = _if("message.tool_calls", written(self.calls.ends_with), ends)
        header = written(frame.answer[0])
        if self.oddity == "header once":
            header = _if("loop.first or messages[loop.index0 - 1].role != 'tool'", header)
        return header + self._thinks() + self._says() + ends

    def _thinks(self) -> str:
        thoughts = self.thoughts
        split = "{%- set said = message.content or '' -%}{%- set thought = message.reasoning_content or '' -%}"
        if thoughts.inline:
            closer = (thoughts.end or "</think>").strip()
            opener = (thoughts.start or "<think>").strip()
            split += (
                "{%- if '" + closer + "' in said -%}"
                "{%- set thought = said.split('" + closer + "')[0].split('" + opener + "')[-1].strip('\\n') -%}"
                "{%- set said = said.split('" + closer + "')[-1].lstrip('\\n') -%}"
                "{%- endif -%}"
            )
        if self.oddity == "trims content":
            split += "{%- set said = said | trim -%}"
        if self.oddity == "parts of content":
            split = split.replace("message.content or ''", f"{_JOINED} or ''")
        split = split.replace("message.reasoning_content", _FIELDS.get(self.oddity, "message.reasoning_content"))
        if not thoughts.start and not thoughts.end:
            return split
        condition = "thought"
        if thoughts.last_only:
            condition += " and (loop.last or messages[-1].role == 'tool')"
        if thoughts.unless_calls:
            condition += " and message.tool_calls"
        shown = written(thoughts.start + "«thought»" + thoughts.end + thoughts.joint)
        return split + _if(condition, shown, written(thoughts.empty))

    def _says(self) -> str:
        calls = self.calls
        left, right = self.thoughts.says
        text = "«said + '\\n'»" if self.oddity == "spaces after content" else "«said»"
        said = _if("said", written(self.frame.space + left + text + right))
        if self.oddity == "content or calls":
            return _if("message.tool_calls", self._calls(), said)
        between = calls.after_content
        if self.oddity == "content first, then a line":
            between = "\n" + between
        return said + _if("message.tool_calls", _if("said", written(between)) + self._calls())

    def _calls(self) -> str:
        calls = self.calls
        separated = _if("not loop.last", written(calls.separator))
        call = calls.call
        if self.oddity == "string arguments":
            call = call.replace(
                "«f.arguments | tojson»", "«f.arguments if f.arguments is string else f.arguments | tojson»"
            )
        one = "{%- set f = call.function -%}" + written(call) + separated
        items = "message.tool_calls[:1]" if calls.only_first else "message.tool_calls"
        each = "{%- for call in " + items + " -%}" + one + "{%- endfor -%}"
        return written(calls.start) + each + written(calls.end)

    def _asks(self) -> str:
        frame, thoughts = self.frame, self.thoughts
        header = frame.answer[0] if frame.asks is None else frame.asks
        prefill = written(thoughts.prefill)
        if not header and frame.answer[0].strip():
            return ""  # If no header starts the answer, the prompt starts no part of it either.
        if thoughts.prefill_off:
            off = written(thoughts.prefill_off)
            prefill = _if("enable_thinking is defined and not enable_thinking", off, prefill)
        asked = written(header) + prefill
        if self.oddity == "asks otherwise with tools":
            asked = _if("tools", written("<|use tools|>")) + asked
        if self.oddity == "header once":
            asked = _if("messages[-1].role != 'tool'", written(header)) + prefill
        return _if("add_generation_prompt", asked) if asked else ""
