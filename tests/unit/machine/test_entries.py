"""Arguments between markers are read to the same end whole as character by character."""

from __future__ import annotations

import pytest

from unrender.format import Arguments, CallSyntax, Codec, Format, Slot, Strings, ToolMode, Typing
from unrender.machine.ids import numbered_id
from unrender.messages.wire import Request, Tool
from unrender.parser.streaming import Parser


def read(text, chunks, tools, form):
    parser = Parser(form, Request(tools=tools), begun="", ids=numbered_id)
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()
    assert sum(span.end - span.start for span in parser.spans) == len(text)
    return parser.message, parser.spans


def tagged(*entry):
    """Return a format whose arguments are written between markers."""
    codec = Codec(typed_by=Typing.SCHEMA, strings=Strings.RAW)
    return Format(
        tools=CallSyntax(
            mode=ToolMode.TAG_WITH_TAGGED,
            call_start="<call>",
            call_end="</call>",
            function=("<f=", Slot.NAME, ">", Slot.ARGUMENTS, "</f>"),
            arguments=Arguments(codec=codec, entry=entry),
        )
    )


TAGGED = {
    "a tag": (tagged("\n<p=", Slot.KEY, ">\n", Slot.VALUE, "\n</p>"), "\n<p=KEY>\nVALUE\n</p>"),
    "two tags": (tagged("<k>", Slot.KEY, "</k>\n<v>", Slot.VALUE, "</v>\n"), "<k>KEY</k>\n<v>VALUE</v>\n"),
    "tags side by side": (tagged("<k>", Slot.KEY, "</k><v>", Slot.VALUE, "</v>"), "<k>KEY</k><v>VALUE</v>"),
    "attributes": (tagged('<p a="', Slot.KEY, '" b="', Slot.VALUE, '"/>'), '<p a="KEY" b="VALUE"/>'),
    "a space before the name": (tagged("<p ", Slot.KEY, "='", Slot.VALUE, "'>"), "<p KEY='VALUE'>"),
    "words in the closer": (tagged("<p>", Slot.KEY, ":", Slot.VALUE, "\n</p> </p>"), "<p>KEY:VALUE\n</p> </p>"),
}
VALUES = ["Rome", "", " ", "3", "null", "[1, 2]", "[1, 2", "<p", "a</p>b", "\n\n", "&lt;&amp", "'\"", "</f></call>"]
KEYS = ["city", "days", "", "</k>", " city", "'city'", "ci\nty", "k" * 1200]
TOOL = Tool(
    name="now",
    parameters={"properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "list": {"type": "array"}}},
)


@pytest.mark.parametrize("name", TAGGED)
def test_an_argument_that_is_here_whole_is_read_as_character_by_character(name):
    """Message and spans are the same for any name and value, names that come twice, and white space of its own."""
    form, entry = TAGGED[name]
    written = [entry.replace("KEY", key).replace("VALUE", value) for key in KEYS for value in VALUES]
    good = entry.replace("KEY", "city").replace("VALUE", "Oslo")
    for argument in written:
        for arguments in (argument, good + argument + good.replace("city", "list"), f"\n {argument}\n\n"):
            text = f"<call><f=now>{arguments}</f></call>"
            assert read(text, [text], (TOOL,), form) == read(text, text, (TOOL,), form)


def test_an_argument_that_is_cut_off_is_read_as_character_by_character():
    """Wherever it breaks off."""
    for form, entry in TAGGED.values():
        text = "<call><f=now>" + entry.replace("KEY", "city").replace("VALUE", "Oslo") * 2
        for end in range(len(text)):
            assert read(text[:end], [text[:end]], (TOOL,), form) == read(text[:end], text[:end], (TOOL,), form)
