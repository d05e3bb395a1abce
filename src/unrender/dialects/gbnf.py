r"""Writes a grammar in GBNF, the dialect of llama.cpp. xgrammar and llguidance's converter also support GBNF.

Strategy: GBNF has no operator for "text before a stop". Such text becomes an automaton (Aho-Corasick) with a rule for each state. A state
is the prefix of a stop that has just been read.

Rules: every rule is reachable and defined. Names consist of lower-case letters, digits and `-`. Text is UTF-8. Only quotes, backslashes and
control characters are escaped, so markers can be in any script. Repetitions never exceed the bounds that llama.cpp accepts. Free text ends
at the stop that is complete first. If several stops end at the same position, the longest one counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain, groupby
from os.path import commonprefix

from unrender.cache import kept
from unrender.dialects.context_free import Stopped, lower, rule_references
from unrender.grammar.expansion import Expansion
from unrender.nodes import Chars, Choice, Literal, Node, Optional, Ref, Repeat, Sequence, in_sequence, refusal_of
from unrender.nodes.patterns import Ranges, bounds_text, complement

ANY_CHARACTER = "[^\\x00]"


def write_gbnf(expansion: Expansion) -> str:
    """Return an expanded grammar in GBNF. The start rule is `root`."""
    lowered = lower(expansion.grammar, for_lexer=False, steps=expansion.limits.grammar_steps)
    return write_rules(lowered.root, lowered.rules)


def write_rules(root: str, rules: Mapping[str, Node | Stopped]) -> str:
    """Return context-free rules in GBNF, `root` first."""
    ordered = _beginnings_once({root: rules[root], **rules}, root)
    lines = (
        line
        for name, node in ordered.items()
        for line in (_automaton(name, node) if isinstance(node, Stopped) else [(name, written_choice(node, _item))])
    )
    return "".join(f"{name} ::= {body}\n" for name, body in lines)


def _beginnings_once(rules: Mapping[str, Node | Stopped], root: str) -> Mapping[str, Node | Stopped]:
    """Return the rules, with common prefixes of a choice's options factored out.

    For each token, llama.cpp tracks every option that is still possible. If a choice has 263 options such as `"get_time" …` and
    `"get_weather" …`, all of them stay possible until their texts differ. Tracking these options costs more than the rest of the grammar.
    """
    written = dict(rules)
    uses = Counter(chain([root], *map(rule_references, rules.values())))
    for name, node in rules.items():
        options = node.options if isinstance(node, Choice) else ()
        # Leave rules that are also used elsewhere unchanged.
        once = [option.rule for option in options if isinstance(option, Ref) and uses[option.rule] == 1]
        begun = [(text, rule) for rule in once if (text := _begins(rules[rule]))]
        if 1 < len(begun) == len(options):
            written[name] = _tree(sorted(begun))
            parts = {rule: node.parts[1:] if isinstance(node := rules[rule], Sequence) else () for _, rule in begun}
            written |= {rule: in_sequence(*after) for rule, after in parts.items()}
    return written


def _begins(node: Node | Stopped) -> str:
    first = node.parts[0] if isinstance(node, Sequence) else node
    return first.text if isinstance(first, Literal) else ""


def _tree(begun: list[tuple[str, str]]) -> Node:
    """Return a choice of the sorted strings, each followed by its rule."""
    options: list[Node] = []
    for _, alike in groupby(begun, key=lambda one: one[0][:1]):
        texts, rules = zip(*alike, strict=True)
        start = commonprefix(texts)
        if start and len(texts) > 1:
            rest = [text[len(start) :] for text in texts]
            options.append(in_sequence(Literal(start), _tree([*zip(rest, rules, strict=True)])))
        else:
            options += [in_sequence(Literal(text), Ref(rule)) for text, rule in zip(texts, rules, strict=True)]
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _automaton(name: str, node: Stopped) -> list[tuple[str, str]]:
    """Return the rules of the automaton for the text before the first stop, one for each state."""
    branches = {stop: branch.rule for stop, branch in node.branches}
    moves = automaton(node.stops)
    names = {prefix: name if at == 0 else f"{name}-s{at}" for at, prefix in enumerate(moves)}
    bodies = [_state(found, node, branches, names) for found in moves.values()]
    exact = [f"{_text(text)} {branch.rule}" for text, branch in node.exact]
    # Exact strings are the whole text before a branch, so only the rule of the start state contains them.
    bodies[0] = " | ".join((*exact, bodies[0]))
    return list(zip(names.values(), bodies, strict=True))


def _state(moves: Mapping[str, str], node: Stopped, branches: Mapping[str, str], names: Mapping[str, str]) -> str:
    # A character that completes a stop without a branch is not allowed: the class `[^…]` excludes this character, and no other option
    # matches it.
    options = [f"{_text(character)} {branches[stop]}" for character, stop in moves.items() if stop in branches]
    options += [f"{_text(character)} {names[onward]}" for character, onward in moves.items() if onward in names]
    # For example, after `</` of the stop `</s>`, `s` continues the stop, `<` leads to the state `<`, and any other character to the start
    # state.
    options.append(f"{_class(tuple((c, c) for c in moves), negated=True)} {names['']}")
    return " | ".join([*options, '""'] if node.at_end else options)


def written_choice(node: Node, item: Callable[[Node], str]) -> str:
    """Write a node as a choice of sequences. `item` writes each part of a sequence."""
    options = node.options if isinstance(node, Choice) else (node,)
    return " | ".join([" ".join(map(item, it.parts)) if isinstance(it, Sequence) else item(it) for it in options])


def _item(node: Node) -> str:
    if type(node) is Ref:
        return node.rule
    match node:
        case Literal(text):
            return _text(text)
        case Chars(ranges, negated, low, high):
            return _class(ranges, negated=negated) + bounds_text(low, high)
        case Optional(inner):
            return _group(inner) + "?"
        case Repeat(inner, low, high, None):
            return _group(inner) + bounds_text(low, high)
        case Choice() | Sequence():
            return f"({written_choice(node, _item)})"
    raise refusal_of(node, "cannot be written in GBNF")


def _group(node: Node) -> str:
    """Return `node` in a form that can be repeated."""
    if isinstance(node, (Ref, Choice, Sequence, Literal)):
        return _item(node)
    # `[a-z]+` followed by `*` would have two operators, so parentheses are required. llguidance's converter drops parentheses around a
    # single repetition, so the parentheses also contain an empty string.
    single = isinstance(node, Chars) and node.minimum == node.maximum == 1
    return _item(node) if single else f'("" {_item(node)})'


# `-` and `^` are never escaped. `_class` puts these characters in a position where every dialect reads them literally.
_CONTROLS = {chr(code): f"\\x{code:02X}" for code in (*range(0x20), 0x7F)}
_TEXT_ESCAPES = str.maketrans(_CONTROLS | {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", '"': '\\"'})
_CLASS_ESCAPES = _CONTROLS | {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", "]": "\\]", "[": "\\["}
_BEFORE_DIGITS = re.compile(r"(?<=[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xff])(?=[0-9A-Fa-f])")


def text_pieces(text: str) -> list[str]:
    r"""Split a string into pieces that engines read correctly. Most strings are a single piece.

    xgrammar 0.2.7 and 0.2.8 convert a character below U+0100 to an escape such as `\xE9`. If hexadecimal digits follow the escape, these
    releases read them as part of the escape. So they would reject the word `Québec` if it were a single string.

    >>> text_pieces("Québec")
    ['Qué', 'bec']
    """
    return _BEFORE_DIGITS.split(text)


def _text(text: str) -> str:
    if text.isascii() and text.isprintable():
        return f'"{text.translate(_TEXT_ESCAPES)}"'
    written = [f'"{piece.translate(_TEXT_ESCAPES)}"' for piece in text_pieces(text)]
    return written[0] if len(written) == 1 else f"({' '.join(written)})"


@kept(lambda text: 200 + 20 * len(text))
def _class(ranges: Ranges, *, negated: bool) -> str:
    if not ranges:
        return ANY_CHARACTER if negated else '""'
    # xgrammar 0.2.7 reads a character such as `§` in a negated class as the last ASCII character. Write the complement of the class
    # instead. The complement excludes NUL, because no text contains NUL.
    if negated and max(high for _, high in ranges) > "\x7f":
        ranges, negated = complement((("\0", "\0"), *ranges)), False
    # A class with only `^` would be `[^]`, which matches any character, so write a string.
    if ranges == (("^", "^"),) and not negated:
        return '"^"'
    plain = [pair for low, high in ranges for pair in _without_signs(low, high)]
    # Put escapes such as `\x01` last, because a digit after them would be read as part of the escape.
    plain.sort(key=lambda pair: _in_class(pair[1]).startswith("\\x"))
    inside = "".join(_in_class(low) if low == high else f"{_in_class(low)}-{_in_class(high)}" for low, high in plain)
    caret, dash = (sign if any(low <= sign <= high for low, high in ranges) else "" for sign in "^-")
    signs = caret + dash if inside or negated else dash + caret
    return f"[{'^' if negated else ''}{inside}{signs}]"


def _without_signs(low: str, high: str) -> list[tuple[str, str]]:
    """Split a range into parts that contain neither `-` nor `^`.

    `_class` writes these two characters at the end of a class, because dialects escape them in different ways.
    """
    parts = [(low, high)]
    for sign in "-^":
        before, after = chr(ord(sign) - 1), chr(ord(sign) + 1)
        cut = [((a, min(b, before)), (max(a, after), b)) if a <= sign <= b else ((a, b),) for a, b in parts]
        parts = [(a, b) for pieces in cut for a, b in pieces if a <= b]
    return parts


def _in_class(character: str) -> str:
    return _CLASS_ESCAPES.get(character, character)


@kept(lambda moves: 300 * len(moves))
def automaton(stops: tuple[str, ...]) -> Mapping[str, Mapping[str, str]]:
    """Return the automaton for text before the first of `stops`. The start state comes first.

    Each state is the prefix of a stop that has just been read. A state maps a character to the next state, or to the stop that the
    character completes. Every other character leads back to the start state. Time and number of states are linear in the total length of
    the stops.

    >>> automaton(("ab",))
    {'': {'a': 'a'}, 'a': {'a': 'a', 'b': 'ab'}}
    """
    whole, lengths = frozenset(stops), {len(stop) for stop in stops}
    children: dict[str, dict[str, str]] = {"": {}}
    for stop in sorted(whole):
        # Skip stops that contain a shorter stop before their end. With the stops `abc` and `b`, `b` is always complete before `abc`.
        if not any(stop[at : at + length] in whole for length in lengths for at in range(len(stop) - length)):
            for at, character in enumerate(stop):
                children.setdefault(stop[:at], {})[character] = stop[: at + 1]
    moves: dict[str, dict[str, str]] = {}
    falls_to: dict[str, str] = {}
    queue = [""]
    for prefix in queue:
        # After `</`, a second `<` restarts the stop. So a state also has the transitions of its longest suffix that is a prefix of a stop.
        fallback = moves[falls_to[prefix]] if prefix else {}
        own = children[prefix]
        falls_to |= {target: fallback.get(character, "") for character, target in own.items()}
        queue += [target for target in own.values() if target not in whole]
        moves[prefix] = dict(sorted({**fallback, **own}.items()))
    return moves
