"""Handwritten grammars, and outputs in them."""

from __future__ import annotations

from dataclasses import dataclass

from properties.families import REQUEST

from unrender import Parser, Policy
from unrender.format import Format, TurnTexts
from unrender.grammar import (
    Grammar,
    argument,
    arguments,
    atomic,
    call_id,
    chars,
    choice,
    content,
    cut,
    json_value,
    name,
    one_or_more,
    optional,
    python_value,
    quoted,
    reasoning,
    ref,
    sequence,
    space,
    tool_call,
    until,
    zero_or_more,
)
from unrender.types import Request

FORMAT = Format(turn=TurnTexts(end="<|end|>\n"))
NAME = name(chars("a-z_", 1, None))
WORD = chars("a-z", 1, None)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ByHand:
    """A grammar, and outputs that follow it."""

    title: str
    grammar: Grammar
    outputs: tuple[str, ...]

    def parser(self, *, strict: bool = False, request: Request = REQUEST, policy: Policy | None = None) -> Parser:
        return Parser(FORMAT, request, grammar=self.grammar, strict=strict, policy=policy)

    def __repr__(self) -> str:
        return self.title


LINES = ByHand(
    title="lines",
    grammar=Grammar(
        sequence(
            one_or_more(
                choice(
                    sequence("? ", cut(), reasoning(until("\n"))),
                    sequence("= ", cut(), content(until("\n"))),
                    tool_call(sequence("! ", NAME, cut(), zero_or_more(ref("entry")))),
                ),
                "\n",
            ),
            optional("\n"),
        ),
        {"entry": sequence("\n  ", cut(), argument(WORD, ": ", json_value()))},
    ),
    outputs=(
        '? Two cities.\n! get_weather\n  city: "Oslo"\n  days: 3\n? And now?\n! get_time\n= Let me see.',
        "= It is 7 degrees.\n",
        "! get_time\n  exact: tru",
    ),
)
BLOCKS = ByHand(
    title="blocks",
    grammar=Grammar(
        sequence(
            optional(sequence("<think>", cut(), reasoning(until("</think>")), "</think>", space("\n"))),
            content(until("<call>", "<think>")),
            zero_or_more(ref("call"), separator=space("\n")),
            space(),
        ),
        {"call": tool_call(sequence("<call>", NAME, ":", cut(), arguments(json_value()), space(), "</call>"))},
    ),
    outputs=(
        '<think>Hm.</think>\nLook.<call>get_weather:{"city": "Oslo"}</call>\n<call>get_time:{}</call>',
        "Just < text.",
        "<call>get_time:[1, 2]</call>",
    ),
)
LAST = ByHand(
    title="name and id last",
    grammar=Grammar(
        one_or_more(
            choice(
                tool_call(
                    sequence("{{", arguments(python_value()), "}}->", NAME, "#", call_id(chars("0-9", 1, 4)), ";")
                ),
                atomic(sequence("(", reasoning(chars("^()", 0, None)), ")")),
                sequence("say ", content(quoted("'"))),
            )
        )
    ),
    outputs=("(why)say 'it\\'s'{{{'city': 'Oslo', 'days': None}}}->get_weather#12;", "say 'x'"),
)
BARE = ByHand(
    title="bare entries",
    grammar=Grammar(
        one_or_more(tool_call(sequence(NAME, "(", zero_or_more(argument(WORD, "=", until(",", ")")), ","), ")")))
    ),
    outputs=("get_weather(city=New York,days=3,note=null)get_time()",),
)
BY_HAND = (LINES, BLOCKS, LAST, BARE)
