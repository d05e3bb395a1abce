"""Shapes written with the tokens of a lexicon: nodes and rules, on one line each."""

from __future__ import annotations

import pytest
from lines import node_line

from unrender.grammar.rules import Rules
from unrender.grammar.spelling import Speller
from unrender.nodes.patterns import read_pattern
from unrender.nodes.texts import RAW
from unrender.schema.shapes import (
    Anything,
    Array,
    Boolean,
    Constant,
    Contained,
    Integer,
    Nothing,
    Null,
    Number,
    Object,
    Property,
    Reference,
    Shape,
    Text,
    Union,
)
from unrender.values.notations import JSON_LEXICON, PYTHON_LEXICON, Lexicon, Quotes

BARE = Lexicon(name="bare", quotes=(Quotes("<|", "|>", None), Quotes("/", "/", None)), null="None", bare_keys=True)
NULL, BOOLEAN, ANY, NOTHING, TEXT = Null(), Boolean(), Anything(), Nothing(), Text()
DEFINITIONS: dict[str, Shape] = {"r": Array(items=Reference("r"))}
A, B, C = Property("a", NULL), Property("b", BOOLEAN), Property("c", NULL)
MUST_A, MUST_B = Property("a", NULL, True), Property("b", BOOLEAN, True)


def spelled(shape, lexicon):
    """Return the node and its rules, and what was reported."""
    rules, reported = Rules(), []
    speller = Speller(lexicon, rules, DEFINITIONS, "s", lambda *loss: reported.append(loss))
    node = speller.spell(shape, "v")
    assert speller.spell(shape, "v") is node
    return {"": node_line(node), **{name: node_line(rule) for name, rule in rules.table.items()}}, reported


def own(rules, lexicon):
    """Return the rules without those that all values of a lexicon share."""
    return {name: line for name, line in rules.items() if not name.startswith(f"{lexicon.name}-")}


SPELLED = [
    (TEXT, JSON_LEXICON, {"": "$json-string"}, []),
    (Text(minimum=1, maximum=3), JSON_LEXICON, {"": "$string", "string": "'\"' ($json-character-92){1,3} '\"'"}, []),
    (Text(pattern=read_pattern('^a"$')), JSON_LEXICON, {"": "$string", "string": "'\"' 'a' '\\\\\"' '\"'"}, []),
    (Integer(), JSON_LEXICON, {"": "$json-integer"}, []),
    (Integer(minimum=3, maximum=4), JSON_LEXICON, {"": "[3-4]"}, []),
    (Integer(minimum=1, maximum=9, multiple=3), JSON_LEXICON, {"": "'3' | '6' | '9'"}, []),
    (Integer(minimum=5, multiple=12345), JSON_LEXICON, {"": "[5-9] | [1-9] [0-9]{1,17}"}, []),
    (Integer(minimum=0, maximum=1), JSON_LEXICON, {"": "[0-1]"}, []),
    (Number(), JSON_LEXICON, {"": "$json-number"}, []),
    (Number(places=1), JSON_LEXICON, {"": "['-'] ('0' | [1-9] [0-9]{0,17}) ['.' [0-9]]"}, []),
    (
        Constant('{"a": [true, null, "x", 1.5, false], "b": {}}'),
        JSON_LEXICON,
        {
            "": "'{' $json-space '\"a\"' $json-colon '[' $json-space 'true' $json-comma 'null' $json-comma '\"x\"' $json-comma '1.5' $json-comma 'false' $json-space ']' $json-comma '\"b\"' $json-colon '{' $json-space '}' $json-space '}'"
        },
        [],
    ),
    (Constant("[]"), JSON_LEXICON, {"": "'[' $json-space ']'"}, []),
    (Constant('"it\'s"'), JSON_LEXICON, {"": "'\"it\\'s\"'"}, []),
    (Union((NULL, BOOLEAN)), JSON_LEXICON, {"": "$v", "v": "'null' | $json-boolean"}, []),
    (
        Reference("r"),
        JSON_LEXICON,
        {"": "$s-r", "s-r-body": "'[' $json-space [($s-r){1, by $json-comma} $json-space] ']'", "s-r": "$s-r-body"},
        [],
    ),
    (
        Array(items=NULL),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space [('null'){1, by $json-comma} $json-space] ']'"},
        [],
    ),
    (
        Array(items=NULL, minimum=1),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space ('null'){1, by $json-comma} $json-space ']'"},
        [],
    ),
    (
        Array(items=NULL, minimum=2, maximum=3),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space ('null'){2,3 by $json-comma} $json-space ']'"},
        [],
    ),
    (
        Array(prefix=(NULL, BOOLEAN), items=NOTHING, maximum=2),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space ['null' [$json-comma $json-boolean] $json-space] ']'"},
        [],
    ),
    (
        Array(prefix=(NULL, BOOLEAN), items=NOTHING, minimum=1, maximum=2),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space 'null' [$json-comma $json-boolean] $json-space ']'"},
        [],
    ),
    (
        Array(prefix=(NULL, BOOLEAN), items=NOTHING, minimum=2, maximum=2),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space 'null' $json-comma $json-boolean $json-space ']'"},
        [],
    ),
    (
        Array(prefix=(NULL,), items=BOOLEAN),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space ['null' [$json-comma ($json-boolean){1, by $json-comma}] $json-space] ']'"},
        [],
    ),
    (
        Array(prefix=(NULL,), items=BOOLEAN, minimum=1),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space 'null' [$json-comma ($json-boolean){1, by $json-comma}] $json-space ']'"},
        [],
    ),
    (
        Array(prefix=(NULL,), items=BOOLEAN, minimum=2),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space 'null' $json-comma ($json-boolean){1, by $json-comma} $json-space ']'"},
        [],
    ),
    (
        Array(prefix=(NULL,), items=BOOLEAN, minimum=3, maximum=4),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space 'null' $json-comma ($json-boolean){2,3 by $json-comma} $json-space ']'"},
        [],
    ),
    (
        Array(prefix=(NULL,), items=BOOLEAN, maximum=1),
        JSON_LEXICON,
        {"": "$v", "v": "'[' $json-space ['null' $json-space] ']'"},
        [],
    ),
    (
        Array(prefix=(NULL, Array(items=NULL)), items=Array(items=BOOLEAN)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-item": "'[' $json-space [($json-boolean){1, by $json-comma} $json-space] ']'",
            "v-1": "'[' $json-space [('null'){1, by $json-comma} $json-space] ']'",
            "v": "'[' $json-space ['null' [$json-comma $v-1 [$json-comma ($v-item){1, by $json-comma}]] $json-space] ']'",
        },
        [],
    ),
    (Array(items=NOTHING, maximum=0), JSON_LEXICON, {"": "$v", "v": "'[' $json-space ']'"}, []),
    (Array(items=NULL, maximum=0), JSON_LEXICON, {"": "$v", "v": "'[' $json-space ']'"}, []),
    (
        Array(items=ANY, minimum=1, contained=Contained(NULL, BOOLEAN, 1, None)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-run": "($json-boolean $json-comma){0,} 'null'",
            "object-extra": "$json-string $json-colon $json-value",
            "v": "'[' $json-space ($v-run){1,1 by $json-comma} ($json-comma $json-value){0,} $json-space ']'",
        },
        [],
    ),
    (
        Array(items=NULL, minimum=3, contained=Contained(NULL, BOOLEAN, 3, None)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-run": "($json-boolean $json-comma){0,} 'null'",
            "v": "'[' $json-space ($v-run){3,3 by $json-comma} ($json-comma 'null'){0,} $json-space ']'",
        },
        [],
    ),
    (
        Array(items=ANY, contained=Contained(NULL, BOOLEAN, 0, 2)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-run": "($json-boolean $json-comma){0,} 'null'",
            "v": "'[' $json-space [(($v-run){1,2 by $json-comma} ($json-comma $json-boolean){0,} | ($json-boolean){1, by $json-comma}) $json-space] ']'",
        },
        [],
    ),
    (
        Array(items=ANY, minimum=2, contained=Contained(NULL, BOOLEAN, 2, 3)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-run": "($json-boolean $json-comma){0,} 'null'",
            "v": "'[' $json-space ($v-run){2,3 by $json-comma} ($json-comma $json-boolean){0,} $json-space ']'",
        },
        [],
    ),
    (Object(), JSON_LEXICON, {"": "$v", "v": "'{' $json-space '}'"}, []),
    (
        Object(properties=(A,)),
        JSON_LEXICON,
        {"": "$v", "v-a": "'\"a\"' $json-colon 'null'", "v": "'{' $json-space [$v-a $json-space] '}'"},
        [],
    ),
    (
        Object(properties=(MUST_A,)),
        JSON_LEXICON,
        {"": "$v", "v-a": "'\"a\"' $json-colon 'null'", "v": "'{' $json-space $v-a $json-space '}'"},
        [],
    ),
    (
        Object(properties=(A, B)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-b": "'\"b\"' $json-colon $json-boolean",
            "v-more": "[$json-comma $v-b]",
            "v": "'{' $json-space [($v-a $v-more | $v-b) $json-space] '}'",
        },
        [],
    ),
    (
        Object(properties=(MUST_A, B)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-b": "'\"b\"' $json-colon $json-boolean",
            "v": "'{' $json-space $v-a [$json-comma $v-b] $json-space '}'",
        },
        [],
    ),
    (
        Object(properties=(A, MUST_B, C)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-b": "'\"b\"' $json-colon $json-boolean",
            "v-c": "'\"c\"' $json-colon 'null'",
            "v-more": "$json-comma $v-b [$json-comma $v-c]",
            "v": "'{' $json-space ($v-a $v-more | $v-b [$json-comma $v-c]) $json-space '}'",
        },
        [],
    ),
    (
        Object(properties=(MUST_A, MUST_B)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-b": "'\"b\"' $json-colon $json-boolean",
            "v": "'{' $json-space $v-a $json-comma $v-b $json-space '}'",
        },
        [],
    ),
    (
        Object(properties=(A, B, C)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-b": "'\"b\"' $json-colon $json-boolean",
            "v-c": "'\"c\"' $json-colon 'null'",
            "v-more": "[$json-comma $v-c]",
            "v-more-2": "[$json-comma $v-b] $v-more",
            "v": "'{' $json-space [($v-a $v-more-2 | $v-b $v-more | $v-c) $json-space] '}'",
        },
        [],
    ),
    (
        Object(extra=((TEXT, NULL),)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-extra": "$json-string $json-colon 'null'",
            "v": "'{' $json-space [($v-extra){1, by $json-comma} $json-space] '}'",
        },
        [],
    ),
    (
        Object(extra=((TEXT, NULL),), minimum=2),
        JSON_LEXICON,
        {
            "": "$v",
            "v-extra": "$json-string $json-colon 'null'",
            "v": "'{' $json-space ($v-extra){2, by $json-comma} $json-space '}'",
        },
        [],
    ),
    (
        Object(extra=((Text(maximum=2), NULL), (Text(minimum=4), Array(items=NULL))), minimum=1),
        JSON_LEXICON,
        {
            "": "$v",
            "string": "'\"' ($json-character-92){0,2} '\"'",
            "string-2": "'\"' ($json-character-92){4,} '\"'",
            "v-extra": "'[' $json-space [('null'){1, by $json-comma} $json-space] ']'",
            "v-extra-2": "$string $json-colon 'null' | $string-2 $json-colon $v-extra",
            "v": "'{' $json-space ($v-extra-2){1, by $json-comma} $json-space '}'",
        },
        [],
    ),
    (
        Object(properties=(A,), extra=((TEXT, NULL),), maximum=2),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-extra": "$json-string $json-colon 'null'",
            "v": "'{' $json-space [($v-a ($json-comma $v-extra){0,2} | ($v-extra){1,2 by $json-comma}) $json-space] '}'",
        },
        [],
    ),
    (
        Object(properties=(A,), extra=((TEXT, NULL),), minimum=2),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-extra": "$json-string $json-colon 'null'",
            "v": "'{' $json-space ($v-a ($json-comma $v-extra){2,} | ($v-extra){2, by $json-comma}) $json-space '}'",
        },
        [],
    ),
    (
        Object(properties=(MUST_A,), extra=((TEXT, NULL),), minimum=1, maximum=2),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-extra": "$json-string $json-colon 'null'",
            "v": "'{' $json-space $v-a ($json-comma $v-extra){1,2} $json-space '}'",
        },
        [],
    ),
    (
        Object(properties=(MUST_A,), extra=((TEXT, NULL),), maximum=0),
        JSON_LEXICON,
        {
            "": "$v",
            "v-a": "'\"a\"' $json-colon 'null'",
            "v-extra": "$json-string $json-colon 'null'",
            "v": "'{' $json-space $v-a $json-space '}'",
        },
        [],
    ),
    (
        Object(properties=(Property("k", Object(properties=(A,))),)),
        JSON_LEXICON,
        {
            "": "$v",
            "v-k-a": "'\"a\"' $json-colon 'null'",
            "v-k": "'{' $json-space [$v-k-a $json-space] '}'",
            "v-k-2": "'\"k\"' $json-colon $v-k",
            "v": "'{' $json-space [$v-k-2 $json-space] '}'",
        },
        [],
    ),
    (
        Text(maximum=2),
        PYTHON_LEXICON,
        {"": "$string", "string": "\"'\" ($python-character-34){0,2} \"'\" | '\"' ($python-character-92){0,2} '\"'"},
        [],
    ),
    (
        Constant('["it", true, null, {"k": false}]'),
        PYTHON_LEXICON,
        {
            "": "'[' '' (\"'it'\" | '\"it\"') ', ' 'True' ', ' 'None' ', ' '{' '' (\"'k'\" | '\"k\"') ': ' 'False' '' '}' '' ']'"
        },
        [],
    ),
    (Array(items=NULL), PYTHON_LEXICON, {"": "$v", "v": "'[' '' [('None'){1, by ', '} ''] ']'"}, []),
    (
        Object(properties=(A, MUST_B)),
        PYTHON_LEXICON,
        {
            "": "$v",
            "v-a": "(\"'a'\" | '\"a\"') ': ' 'None'",
            "v-b": "(\"'b'\" | '\"b\"') ': ' $python-boolean",
            "v-more": "', ' $v-b",
            "v": "'{' '' ($v-a $v-more | $v-b) '' '}'",
        },
        [],
    ),
    (BOOLEAN, PYTHON_LEXICON, {"": "$python-boolean"}, []),
    (NULL, PYTHON_LEXICON, {"": "'None'"}, []),
    (Integer(minimum=1, maximum=2), PYTHON_LEXICON, {"": "[1-2]"}, []),
    (TEXT, BARE, {"": "$bare-string"}, []),
    (
        Text(minimum=2, maximum=5),
        BARE,
        {"": "$string", "string": "'<|' text[|>] '|>' | '/' [^\\/]{2,5} '/'"},
        [
            ("minLength", "an unescaped string ends at its quote, whatever comes before it"),
            ("maxLength", "an unescaped string ends at its quote, whatever comes before it"),
        ],
    ),
    (
        Text(pattern=read_pattern("^[a-z]+$")),
        BARE,
        {"": "$string", "string": "'<|' ([a-z]){1,} '|>' | '/' ([a-z]){1,} '/'"},
        [],
    ),
    (
        Text(pattern=read_pattern("^[^a]+$")),
        BARE,
        {"": "$string", "string": "'<|' text[|>] '|>' | '/' text[/] '/'"},
        [
            ("pattern", "an unescaped string ends at its quote, whatever comes before it"),
            ("pattern", "an unescaped string ends at its quote, whatever comes before it"),
        ],
    ),
    (
        Constant('{"a b": "x", "c": null}'),
        BARE,
        {"": "'{' '' 'a b' ':' ('<|x|>' | '/x/') ',' 'c' ':' 'None' '' '}'"},
        [],
    ),
    (
        Object(properties=(A, MUST_B)),
        BARE,
        {
            "": "$v",
            "v-a": "'a' ':' 'None'",
            "v-b": "'b' ':' $bare-boolean",
            "v-more": "',' $v-b",
            "v": "'{' '' ($v-a $v-more | $v-b) '' '}'",
        },
        [],
    ),
    (
        Object(extra=((TEXT, NULL),)),
        BARE,
        {
            "": "$v",
            "v-extra": "[^\\t\\n\\x0b\\x0c\\r\\x1c\\x1d\\x1e\\x1f \"'\\(\\),:<=>\\[\\]\\{\\|\\}\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000]+ ':' 'None'",
            "v": "'{' '' [($v-extra){1, by ','} ''] '}'",
        },
        [],
    ),
]
"""A shape, a lexicon, the rules that are its own, and what of the shape is not enforced."""


@pytest.mark.parametrize(("shape", "lexicon", "lines", "losses"), SPELLED)
def test_a_shape_is_written_with_its_lexicon(shape, lexicon, lines, losses):
    """Optional entries may be left out, sizes hold, and what may follow an entry is a rule."""
    rules, reported = spelled(shape, lexicon)

    assert own(rules, lexicon) == lines
    assert reported == losses


@pytest.mark.parametrize(
    ("lexicon", "lines"),
    [
        (
            JSON_LEXICON,
            {
                "": "$json-value",
                "json-value": "$json-object | $json-array | $json-string | $json-number | $json-boolean | 'null'",
                "json-object": "'{' $json-space [($object-extra){1, by $json-comma} $json-space] '}'",
                "json-string": "'\"' ($json-character-92){0,} '\"'",
                "json-character-92": "[^\\x00-\\x1f\"\\\\\\x7f] | '\\\\' ([\"\\\\bfnrt] | 'u' ([0-9A-CE-Fa-ce-f] [0-9A-Fa-f]{3} | [Dd] [0-7] [0-9A-Fa-f]{2} | [Dd] [8-9A-Ba-b] [0-9A-Fa-f]{2} '\\\\u' [Dd] [C-Fc-f] [0-9A-Fa-f]{2}))",
                "json-colon": "$json-space ':' $json-space",
                "json-space": "[\\t-\\n\\r ]{0,32}",
                "object-extra": "$json-string $json-colon $json-value",
                "json-comma": "$json-space ',' $json-space",
                "json-array": "'[' $json-space [($json-value){1, by $json-comma} $json-space] ']'",
                "json-number": "['-'] ('0' | [1-9] [0-9]{0,17}) ['.' [0-9]{1,18}] [[Ee] [[\\+\\-]] [0-9]{1,2}]",
                "json-boolean": "'true' | 'false'",
            },
        ),
        (
            PYTHON_LEXICON,
            {
                "": "$python-value",
                "python-value": "$python-object | $python-array | $python-string | $python-number | $python-boolean | 'None'",
                "python-object": "'{' '' [($object-extra){1, by ', '} ''] '}'",
                "python-string": "\"'\" ($python-character-34){0,} \"'\" | '\"' ($python-character-92){0,} '\"'",
                "python-character-34": "[^\\x00-\\x1f'\\\\\\x7f-\xa0\xad] | '\\\\' ['\\\\nrt]",
                "python-character-92": "[^\\x00-\\x1f\"\\\\\\x7f-\xa0\xad] | '\\\\' [\"\\\\nrt]",
                "object-extra": "$python-string ': ' $python-value",
                "python-array": "'[' '' [($python-value){1, by ', '} ''] ']'",
                "python-number": "['-'] ('0' | [1-9] [0-9]{0,17}) ['.' [0-9]{1,18}] [[Ee] [[\\+\\-]] [0-9]{1,2}]",
                "python-boolean": "'True' | 'False'",
            },
        ),
        (
            BARE,
            {
                "": "$bare-value",
                "bare-value": "$bare-object | $bare-array | $bare-string | $bare-number | $bare-boolean | 'None'",
                "bare-object": "'{' '' [($object-extra){1, by ','} ''] '}'",
                "object-extra": "[^\\t\\n\\x0b\\x0c\\r\\x1c\\x1d\\x1e\\x1f \"'\\(\\),:<=>\\[\\]\\{\\|\\}\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000]+ ':' $bare-value",
                "bare-array": "'[' '' [($bare-value){1, by ','} ''] ']'",
                "bare-string": "'<|' text[|>] '|>' | '/' [^\\/]* '/'",
                "bare-number": "['-'] ('0' | [1-9] [0-9]{0,17}) ['.' [0-9]{1,18}] [[Ee] [[\\+\\-]] [0-9]{1,2}]",
                "bare-boolean": "'true' | 'false'",
            },
        ),
    ],
)
def test_any_value_is_written_with_shared_rules(lexicon, lines):
    """Each kind of value has one rule, which all values share; white space is where the lexicon lets it be."""
    assert spelled(ANY, lexicon)[0] == lines


def test_shared_rules_are_written_once():
    """Two lists of booleans refer to the same rules."""
    rules, _ = spelled(Array(prefix=(BOOLEAN, TEXT, Number(), Integer(), BOOLEAN), items=NOTHING), JSON_LEXICON)

    shared = sorted(name.removeprefix("json-") for name in rules if name.startswith("json-"))
    assert shared == ["boolean", "character-92", "comma", "integer", "number", "space", "string"]


def test_words_are_left_out_of_a_string():
    """A string that is not one of some words is written letter by letter."""
    rules, _ = spelled(Text(excluded=frozenset(["x"])), BARE.__class__(name="b", quotes=(Quotes("<", ">", RAW),)))

    assert rules == {"": "$string", "string": "'<' ([^x] [\\s\\S]* | 'x' [\\s\\S] [\\s\\S]* | '') '>'"}


def test_the_impossible_is_not_written():
    """`Nothing` has no node."""
    with pytest.raises(ValueError, match="no value has this shape"):
        spelled(NOTHING, JSON_LEXICON)


def test_nothing_is_reported_where_nobody_listens():
    """A loss without a listener is let pass."""
    speller = Speller(BARE, Rules(), {})

    assert node_line(speller.quoted(Text(minimum=3), BARE.quotes[0])) == "'<|' text[|>] '|>'"
    assert node_line(speller.spell(Array(items=NULL))) == "$value"
