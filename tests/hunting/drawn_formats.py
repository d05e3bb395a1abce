"""Hypothesis strategies for Formats over the whole space of `unrender.format`, with tools to call in them.

Strategy: the drawn values are plain data, as `Format.from_dict` reads it. Most markers are new and of a common shape.
Some are odd: a letter, a bracket, whitespace, a quote. Some are repeated, whole or in part, so that markers collide.
Some data is invalid on purpose, and must be rejected with the name of a field.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, assert_never

from hypothesis import strategies as st
from tables import table

from unrender.format import Strings

Data = dict[str, Any]

T: Any = table("drawn_formats")
SHAPES, ODD, SPACES, WORDS, JSON_TYPES = (T[name] for name in ("SHAPES", "ODD", "SPACES", "WORDS", "JSON_TYPES"))
SLOT = {name: {"slot": name} for name in ("name", "arguments", "id", "index", "key", "value", "any", "type")}
_LISTS = ("json", "json", "python", "bare")


@dataclass
class Draw:
    """Draws the parts of one Format and remembers its earlier markers."""

    draw: Any
    used: list[str] = field(default_factory=list)

    def one(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, percent: int) -> bool:
        return bool(self.draw(st.integers(0, 99)) >= 100 - percent)

    def marker(self, *, spaced: bool = True) -> str:
        """Return a marker that is not blank."""
        kind = self.draw(st.integers(0, 39))
        if kind == 39:
            core = self.one(*ODD)
        elif kind >= 37 and self.used:
            core = self.one(*self.used)
        elif kind == 36 and self.used:
            whole = self.one(*self.used)
            core = whole[: self.draw(st.integers(1, len(whole)))]
        else:
            number = len(self.used) if self.chance(70) else ""
            core = self.one(*SHAPES).format(f"{self.one(*WORDS)}{number}")
        core = core.strip() or "~"
        self.used.append(core)
        return self.space() + core + self.space() if spaced else core

    def space(self) -> str:
        return str(self.one(*SPACES))

    def maybe(self, percent: int = 50) -> str:
        """Return a marker or an empty string."""
        return self.marker() if self.chance(percent) else ""

    def joint(self) -> str:
        return self.marker() if self.chance(5) else self.space()

    # Calls.

    def tools(self) -> Data:
        mode = self.one("json_native", "tag_with_json", "tag_with_tagged")
        data: Data = {"mode": mode, **self.frame(native=mode == "json_native")}
        if mode == "json_native":
            data |= self.native(data)
        else:
            data["function"] = self.function()
            data["arguments"] = self.entries() if mode == "tag_with_tagged" else self.object()
        if self.chance(15):
            data["parallel"] = False
        if self.chance(15):
            data["whole"] = True
        if self.chance(10):
            data["index_start"] = self.one(0, 1, 7)
        if mode != "json_native" and self.chance(10):
            data["id_parts"] = [0, self.draw(st.integers(1, 4))]
        return data

    def frame(self, *, native: bool) -> Data:
        section, call = self.chance(50), self.chance(60)
        data = {
            "section_start": self.marker() if section else "",
            "section_end": self.marker() if section and self.chance(80) else self.maybe(10),
            "call_start": self.marker() if call else "",
            "call_end": self.marker() if call and self.chance(80) else self.maybe(10),
            "separator": self.one("", "", "\n", " ", ", ", ",\n    ", ";", self.marker()),
        }
        if native and self.chance(50):
            data["section_start"] += "["
            data["section_end"] = self.one("]", "\n]") + data["section_end"]
            data["separator"] = self.one(", ", ",", ",\n    ")
        return data

    def native(self, frame: Data) -> Data:
        name, arguments, ident = self.one("name", "tool", "f"), self.one("arguments", "parameters", "with"), "id"
        pad = self.one("", "", "\n    ", " ")
        fields: list[tuple[str, list[Any]]] = [(name, ['"', SLOT["name"], '"']), (arguments, [SLOT["arguments"]])]
        if self.chance(30):
            fields.append((ident, ['"', SLOT[self.one("id", "index")], '"']))
        if self.chance(15):
            fields.append(("type", ['"function"']))
        fields = self.draw(st.permutations(fields)) if self.chance(30) else fields
        nested = self.chance(15)
        if self.chance(10):
            fields, nested = [("", [])], False
        parts: list[Any] = ["{" + pad] + ['"function": {'] * nested
        for at, (key, value) in enumerate(fields):
            parts += [", " + pad] * bool(at) + [f'"{key}": ', *value]
        if fields == [("", [])]:
            parts = ["{" + pad, '"', SLOT["name"], '": ', SLOT["arguments"]]
        parts += [pad + "}"] + ["}"] * nested
        counter = any(SLOT["index"] in value for _, value in fields)
        outer = ["function"] * nested
        identified = any(key == ident for key, _ in fields)
        envelope = {
            "name_field": [*outer, name],
            "args_field": [*outer, arguments],
            "id_field": [*outer, ident] if identified and not counter else [],
            "gen_id_field": [*outer, ident] if identified and counter else [],
        }
        if fields == [("", [])]:
            envelope = {}
        wrapped = any(frame[key].rstrip().endswith("[") for key in ("section_start", "call_start"))
        return {
            "function": joined(parts),
            "envelope": {**envelope, "array_wrapped": wrapped != self.chance(2)},
            "arguments": {"codec": {"indent": self.one(0, 0, 0, 4), "ascii_only": self.chance(20)}},
        }

    def function(self) -> list[Any]:
        slots = ["name", *self.one((), (), ("id",), ("index",), ("any",), ("name",), ("index", "id")), "arguments"]
        if self.chance(15):
            slots[0:2] = slots[1::-1] if slots[1] != "arguments" else slots[0:2]
        parts: list[Any] = [self.marker()] if self.chance(70) else []
        for at, slot in enumerate(slots):
            parts.append(SLOT[slot])
            if at + 1 < len(slots):
                parts.append(self.marker() if self.chance(85) else self.space())
        if self.chance(60):
            parts.append(self.marker())
        if self.chance(10):
            parts += [SLOT[self.one("name", "index")], self.marker()]
        return joined(parts)

    def object(self) -> Data:
        codec: Data = self.one({}, {}, {}, {"strings": "python", "words": "python", "containers": "python"})
        if not codec and self.chance(20):
            codec |= self.one(
                {"indent": 4},
                {"ascii_only": True},
                {"item_separator": ",", "key_separator": ":"},
                {"indent": 2},
                {"escapes": [['"', '\\"'], ["\\", "\\\\"], ["\n", "\\n"]]},
            )
        data: Data = {"codec": codec}
        if self.chance(15):
            data["when_empty"] = self.one("", "{}", "null", "-")
        return data

    def entries(self) -> Data:
        style = self.one("tagged", "tagged", "tagged", "typed", "xml", "keyed", "lines")
        codec = self.codec(style)
        key = [SLOT["key"]]
        kind: list[Any] = [self.marker(), SLOT["type"]] if style == "typed" else []
        if style == "xml":
            opener, closer, end = (
                self.one("<", "<", "[", "<x:"),
                self.one("</", "</", "[/", "</x:"),
                self.one(">", "]", ">"),
            )
            entry = [opener, *key, end, SLOT["value"], closer, *key, end + self.space()]
        elif style == "keyed":
            entry = [*key, self.one("=", ":", ": ", self.marker()), SLOT["value"]]
        elif style == "lines":
            entry = [self.space(), *key, ": ", SLOT["value"], "\n"]
        else:
            entry = [self.marker(), *key, *kind, self.marker(), SLOT["value"], self.marker()]
        data: Data = {"entry": joined(entry), "codec": codec}
        if style == "keyed" or self.chance(15):
            data |= {"start": self.one("(", "{", self.marker()), "end": self.one(")", "}", self.marker())}
            data["separator"] = self.one(", ", ",", ";", self.marker())
        elif self.chance(20):
            data["separator"] = self.one("\n", " ", ",", self.marker())
        if self.chance(10):
            data["when_empty"] = self.one("", "()", "-")
        return data

    def codec(self, style: str) -> Data:
        strings = "raw" if style in ("typed", "xml") else self.one("raw", *Strings)
        data: Data = {"strings": strings, "words": self.one("json", "python", "python_null")}
        unquoted = Strings(strings).unquoted
        data["containers"] = "xml" if style == "xml" else self.one(*_LISTS)
        if style == "xml":
            data["item_tag"] = self.one("item", "li", "x")
        if unquoted:
            data["typed_by"] = "attribute" if style == "typed" else "schema"
        data |= self.quoting(Strings(strings))
        if style == "typed":
            words = self.one(("true", "false"), ("string", None), ("s", "n"))
            data["types"] = [[kind, words[kind != "string"] or kind] for kind in JSON_TYPES]
        if self.chance(15):
            data["omits_null"] = True
        if self.chance(10):
            data |= {"item_separator": ",", "key_separator": ":"}
        return data

    def quoting(self, strings: Strings) -> Data:
        """Return additional codec fields for this kind of string."""
        match strings:
            case Strings.JSON | Strings.PYTHON | Strings.SINGLE:
                return {}
            case Strings.RAW:
                return {"cdata": self.chance(10)} if self.chance(85) else {"escapes": self.one(*T["ESCAPES"])}
            case Strings.QUOTED:
                quote = self.one("<|'|>", self.marker(spaced=False), "«")
                escapes = [["'", "\\'"], ["»", "\\»"]] if self.chance(15) else []
                return {
                    "string_open": quote,
                    "string_close": self.one(quote, "»", self.marker(spaced=False)),
                    "escapes": escapes,
                }
            case _:
                assert_never(strings)

    # Text around calls.

    def reasoning(self) -> Data:
        mode = self.one("tag_based", "tag_based", "delimiter", "forced_open", "forced_closed", "tools_only")
        data: Data = {"mode": mode, "start": "" if mode == "delimiter" else self.marker(), "end": self.marker()}
        if self.chance(30):
            data["empty"] = self.one(
                data["start"] + data["end"], data["end"].strip(), data["start"].strip() + data["end"]
            )
        if self.chance(10):
            data["unseen"] = True
        if self.chance(8):
            data["holds_calls"] = True
        return data

    def content(self) -> Data:
        mode = self.one("always_wrapped", "wrapped_with_reasoning")
        return {"mode": mode, "start": self.marker(), "end": self.maybe(70), "wraps_empty": self.chance(20)}

    def turn(self, reasoning: Data) -> Data:
        names = ("reasoning_to_content", "reasoning_to_tools", "content_to_tools", "start_to_tools", "tools_to_content")
        data: Data = {name: self.joint() for name in names}
        data["headers"] = ["<|assistant|>\n"] if self.chance(50) else [self.marker()]
        data["end"] = self.maybe(80)
        if self.chance(15):
            data["ends"] = [self.marker()]
        if self.chance(10):
            data["start_to_content"] = self.space()
        if self.chance(10):
            data["tools_first"] = True
        start, end, mode = reasoning.get("start", ""), reasoning.get("end", ""), reasoning.get("mode")
        if mode in ("forced_open", "forced_closed"):
            data["prefill"] = data["prefill_no_thinking"] = start
        if mode == "forced_closed" or (end and self.chance(20)):
            data["prefill_no_thinking"] = self.one(
                start + end, end, start.rstrip() + end.lstrip(), start + end + "\n\n"
            )
        if mode == "delimiter":
            data["prefill"] = self.one("", self.marker())
        return data

    def format(self) -> Data:
        data: Data = {"version": 1}
        if self.chance(85):
            data["tools"] = self.tools()
        reasoning = self.reasoning() if self.chance(55) else {}
        if reasoning:
            data["reasoning"] = reasoning
        if self.chance(25):
            data["content"] = self.content()
        data["turn"] = self.turn(reasoning)
        if self.chance(12):
            data["tolerated"] = [self.tools()]
        if self.used and self.chance(12):
            data["spellings"] = [{"marker": self.one(*self.used), "others": [self.marker()]}]
        if self.chance(12):
            data["ignored"] = [self.marker()]
        if self.chance(5):
            data["cleans_content"] = True
        return self.spoiled(data) if self.chance(8) else data

    def spoiled(self, data: Data) -> Data:
        """Return the data with one text or list replaced, possibly by an invalid value."""
        data = json.loads(json.dumps(data))
        places = list(_places(data))
        holder, key = places[self.draw(st.integers(0, len(places) - 1))]
        texts = ("", " ", "\n" * 40, "x" * 1_001, "\ufdd0")
        odd: tuple[Any, ...] = (*texts, None, [], {}, 7, True, [SLOT["key"]], SLOT["value"], *ODD)
        holder[key] = self.one(*odd, *self.used)
        return data


def _places(data: Any) -> list[tuple[Any, Any]]:
    keys = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    return [place for key in keys for place in ((data, key), *_places(data[key]))]


def joined(parts: list[Any]) -> list[Any]:
    """Return the parts of a skeleton, joining adjacent texts and dropping empty ones."""
    found: list[Any] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return found


# Tools.

NAMES = ("f", "get", "get_weather", "set_x2", "search", "a-b", "ns.tool")
KEYS = ("a", "b", "city", "is_on", "n2")
SCALARS = T["SCALARS"]
NESTED: tuple[Data, ...] = T["NESTED"]


@st.composite
def tools(draw: Any) -> list[Data]:
    """Draw one to three tools with arguments of all types."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    return [{"name": name, "parameters": draw(parameters())} for name in names]


@st.composite
def parameters(draw: Any) -> Data:
    """Draw the schema of a tool's arguments."""
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=4, unique=True))
    properties = {key: draw(st.sampled_from((*SCALARS, *SCALARS, *NESTED))) for key in keys}
    required = [key for key in keys if draw(st.booleans())]
    schema = {"type": "object", "properties": properties, "required": required}
    return schema if draw(st.integers(0, 4)) == 0 else {**schema, "additionalProperties": False}


@st.composite
def cases(draw: Any) -> Data:
    """Draw a Format's data, a request, and the seed of the answers."""
    parts = Draw(draw)
    return {
        "format": parts.format(),
        "tools": draw(tools()),
        "choice": parts.one("auto", "auto", "auto", "required", "none"),
        "parallel": parts.chance(85),
        "prefill": parts.one("", "", "prefill", "prefill_no_thinking"),
        "seed": draw(st.integers(0, 999)),
    }
