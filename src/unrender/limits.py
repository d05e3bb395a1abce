"""Defines every limit of the library, with its value, its unit and its purpose.

`scripts/reference.py` generates the last section of `docs/explanation/security.md` from this module. Users can change the fields of
`Limits`:

>>> from unrender import ChatTemplate
>>> endless = "{% for m in messages * 1000 %}{{ m.role }}{% endfor %}"
>>> template = ChatTemplate.from_string(endless, limits=Limits(rendering_steps=1_000))
>>> template.prepare([{"role": "user", "content": "Hi"}])
Traceback (most recent call last):
unrender.errors.TemplateError: template, line 1: the template needs more than 1000 steps

Rules: each limit has one name, defined here, and may bound several things of about the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

# Limits that callers can change.


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for one template: each rendering, the analysis, and the grammar of one request.

    A rendering or a template source over its limit raises `TemplateError`. If the analysis exceeds a limit, the remaining fields of the
    format keep their defaults, and a diagnostic is added. For a single tool over a limit, the grammar accepts any arguments, and a
    `SchemaWarning` is issued. If all tools together exceed a limit, `GrammarError` is raised.
    """

    rendering_steps: int = 2_000_000  # steps
    """Maximum number of steps of one rendering, i.e. loop iterations, calls, filters, lookups and outputs."""
    rendering_characters: int = 10_000_000  # characters
    """Maximum length of the output, and of any intermediate string. All strings of a rendering together may have ten times this length."""
    rendering_items: int = 200_000  # items
    """Maximum length of any intermediate list. All lists of a rendering together may have 25 times this length."""
    rendering_seconds: float = 1.0  # seconds
    """Maximum CPU time of the rendering thread. Unlike elapsed time, CPU time doesn't depend on the machine's load."""
    template_characters: int = 200_000  # characters
    """Maximum length of the template's source."""
    template_nodes: int = 30_000  # nodes
    """Maximum number of expressions and statements in the template's source. Jinja's compiler takes about a second for 30,000 of them."""
    template_scopes: int = 500_000  # names
    """Maximum number of statements that open a scope or a branch, multiplied by the number of names in the source. Jinja's compiler checks
    all names for each such statement.
    """
    analysis_renderings: int = 400  # renderings
    """Maximum number of rendered probes."""
    analysis_characters: int = 3_000_000  # characters
    """Maximum total length of all renderings of the analysis, which are kept in memory."""
    analysis_searched: int = 1_000_000  # characters
    """Maximum number of characters decoded and values compared during the search for calls in renderings."""
    analysis_seconds: float = 3.0  # seconds
    """Maximum CPU time of one analysis, measured from the first probe."""
    probe_steps: int = 50_000  # steps
    """Maximum number of steps of one rendering during analysis."""
    probe_characters: int = 100_000  # characters
    """Maximum length of the output, and of any intermediate string, in one rendering during analysis."""
    probe_items: int = 10_000  # items
    """Maximum length of any intermediate list in one rendering during analysis."""
    probe_seconds: float = 0.25  # seconds
    """Maximum CPU time of one rendering during analysis."""
    tool_parts: int = 50_000  # parts
    """Maximum number of shapes, values and pattern positions in the expansion of one tool's schema, or of a response schema."""
    tool_characters: int = 500_000  # characters
    """Maximum total length of the names, values and patterns in one tool's schema."""
    tool_depth: int = 64  # levels
    """Maximum nesting depth of lists and objects in a tool. The nesting of schemas has a lower limit."""
    grammar_parts: int = 100_000  # parts
    """Maximum total number of parts in the schemas of all tools of a request."""
    grammar_characters: int = 2_000_000  # characters
    """Maximum total length of the names, values and patterns in the schemas of all tools of a request."""
    grammar_steps: int = 1_000_000  # steps
    """Maximum number of steps for combining free text with the markers that may end it."""


STANDARD = Limits()

# The process and its files.

CACHE_BYTES = 128_000_000  # bytes
"""Maximum size of the in-memory cache of parsed templates, tools, schemas and values computed from them."""
MAX_STORED = 256  # entries
"""Maximum number of analyses on disk, or of one model's grammars in the gateway. The oldest are deleted first."""
MAX_FILE = 64_000_000  # bytes
"""Maximum size of a model file that is read completely, a string in a GGUF file, a line of a batch, one engine's token ids in the gateway,
or the prompts that a trainer's adapter keeps as text.
"""
MAX_DOCUMENT = 1_000_000  # characters
"""Maximum size of a declared format, a stored analysis, a sample or a playground text, and maximum number of steps to parse a prefill."""
MAX_GGUF_VALUES = 5_000_000  # values
"""Maximum number of metadata pairs and array items in a GGUF file. The largest known vocabularies need a fifth of this limit."""
MAX_GGUF_DEPTH = 4  # levels
"""Maximum nesting depth of arrays in a GGUF file. Known files contain no nested arrays."""

# Values and requests.

MAX_DEPTH = 500  # levels
"""Maximum nesting depth of lists and objects in a message, a tool, or a value of a template. Hashing deeper values overflows Python's
stack, which crashes the process.
"""
MAX_PARSED_DEPTH = 512  # levels
"""Maximum nesting depth of lists and objects in a parsed argument. Python's `json` module fails near 1,000."""
MAX_VALUES = 1_000_000  # lists and objects
"""Maximum number of lists and objects in a conversation, or in one tool."""
MAX_TOOLS = 4096  # tools
"""Maximum number of tools in one request. More tools wouldn't fit into any prompt."""
MAX_MESSAGES = 10_000  # messages
"""Maximum number of messages in one request or prompt, and of files checked in the cache folder."""
MAX_COUNT = 10**9
"""Largest repetition count in a grammar, and largest token limit of an answer."""

# Rendering.

MAX_INTEGER_BITS = 8192  # bits
"""Maximum size of an integer that a template computes. Python refuses to convert much longer integers to strings."""
MAX_SLOW_TEXT = 100_000  # characters
"""Maximum length of a string that a template passes to a slow filter, or that is parsed with all declared formats or searched for intact arguments."""
MAX_SLOW_LIST = 400_000  # weight
"""Maximum number of characters of all items in a list that a template sorts, because sorting compares the items."""
MAX_TEXT_COMPARISONS = 100_000_000  # comparisons
"""Maximum number of character comparisons when a template searches a text."""
MAX_SLOW_RENDERINGS = 2  # renderings
"""Maximum time for all renderings of one conversation, in multiples of `rendering_seconds`, and maximum number of probes that may exceed
their limits.
"""

# Formats and their analysis.

MAX_MARKER = 1_000  # characters
"""Maximum length of a marker or another string of a Format. Also the maximum number of characters
searched for a header, and of tokens read from the end of a prompt.
"""
MAX_LAYOUT = 32  # characters
"""Maximum amount of whitespace at either end of a marker, or between two JSON tokens. Without this limit, a model
could write whitespace forever.
"""
MAX_TEXT = 16_000  # characters
"""Maximum total length of all markers of a Format, and of one `why`."""
MAX_ITEMS = 128  # entries
"""Maximum number of entries of a list in a Format, of prompt prefixes that are compared, and of calls in one answer in the gateway."""
MAX_PARTS = 32  # parts
"""Maximum number of parts of a skeleton, numbers that a schema excludes, nested groups in a pattern, and repetitions in which a grammar
counts calls.
"""
MAX_INDEX = 1_000_000
"""Maximum number at which a template may start to number its calls."""
MAX_ID = 64  # characters
"""Maximum length of a call id."""
MAX_RETRIES = 8  # tries
"""Maximum number of attempts to fix one conversation or template, and of lengths of call ids to try."""
MAX_PLACES = 400  # places
"""Maximum number of brackets tried in one text, guesses for an example value, splits of one text in tests, and random choices of a sample.
"""

# Schemas and grammars.

MAX_SCHEMA_DEPTH = 48  # levels
"""Maximum nesting depth of schemas and enum values. JSON parsers of engines fail at about twice this depth."""
MAX_GRAMMAR_DEPTH = 64  # levels
"""Maximum nesting depth of a value that is compared with its schema, and of structural tags. Deeper tags are written as EBNF."""
MAX_SCHEMA_PARTS = 50_000  # subschemas
"""Maximum number of subschemas read for one schema."""
MAX_CONJUNCTS = 200  # subschemas
"""Maximum number of subschemas that apply to the same value."""
MAX_JUDGED = 100_000  # shapes
"""Maximum number of shapes compared with one value and its parts. If more would be needed, any value is allowed."""
MAX_OPTIONS = 256  # options
"""Maximum number of branches after combining subschemas. Also the maximum number of array items written one by one, of first characters of a
node, and of argument names in a search.
"""
MAX_BREAKS = 64  # ways
"""Maximum number of ways to violate a schema, of patterns in `patternProperties`, and of remainders of `multipleOf`."""
MAX_FEW = 8
"""Maximum number of integers enumerated for a range, branches of a `oneOf`, open tags, tokens per character, and similar answers kept by
the gateway.
"""
MAX_SMALL = 16
"""Maximum of several small counts. Examples are the depth of a schema negation, the possible ends of a tool name, the spaces of an indent,
and the answers or stop strings of a request. It also limits the depth of an example, and the characters of names in lookaheads.
"""
MAX_STATES = 10_000  # states
"""Maximum length of a pattern with its repetitions expanded, the largest `multipleOf`, and the maximum number of pairs of alternatives
compared.
"""
MAX_REPETITIONS = 1_000  # repetitions
"""Maximum number of repetitions that a grammar counts, because engines reject more, and of digits to which a template rounds."""
MAX_SCHEMA_DIGITS = 40  # digits
"""Maximum number of digits before the decimal point of a number in a schema."""
MAX_INTEGER_DIGITS = 18  # digits
"""Maximum number of digits of an unbounded number, which engines store in 64 bits, and of numbers in quantifiers and JSON pointers."""
MAX_STEPS = 2_000_000  # steps
"""Maximum number of state transitions for matching one text against a pattern. A text that needs more transitions counts as a match."""
MAX_KNOWN_STATES = 512  # entries
"""Maximum number of cached state sets of one pattern, and of cached character classes of one alphabet."""
MAX_EXCLUDED_WORD = 100  # characters
"""Maximum length of a word that a grammar can exclude."""
MAX_COMPARED = 200_000  # parts
"""Maximum number of first characters compared in one grammar, and of ranges generated to estimate the size of a schema."""
MAX_PIECES = 5_000  # pieces
"""Maximum number of options compared for a lexer, parts of one object, keys hashed in one call, items or escapes of JSON matched at once,
and steps of a playground animation.
"""

# Parsing.

MAX_HEAD = 12  # characters
"""Maximum number of characters of a literal that the fast path compares. The parser compares the remaining characters."""
MAX_NAME = 1200  # characters
"""Maximum length of a tool's or an argument's name."""
MAX_BLANK = 64  # characters
"""Maximum amount of whitespace held back at a boundary, or skipped around a marker."""
MAX_CONTEXT = 4096  # characters
"""Maximum number of characters searched before a call for an open quotation, or at the end of a prompt for a prefill."""
MAX_WORD = 256  # characters
"""Maximum length of a number or bare word, and of the text before the closing brace of a broken call. JSON numbers rarely exceed 25
characters.
"""
MAX_WORDS = 128  # characters
"""Maximum number of characters in a call's header that the parser ignores, and between a mentioned marker and the end of inline code."""
MAX_STACK = 100_000  # nodes
"""Maximum number of nodes that are open at once in a handwritten grammar, such as rules, sequences, choices and tags."""
MAX_GIVEN_BACK = 64  # characters
"""Maximum backtracking in a handwritten grammar, in characters per character read. Text that needs more backtracking is malformed."""
FREE_REREADS = 8_192  # characters
"""Number of characters that may be parsed again regardless of the text's length. Once the limit is reached, a broken call is plain text."""

# Output for users.

MAX_SHOWN = 200  # characters
"""Maximum number of characters quoted from a path, a name, a value or a playground request."""
MAX_REMARK = 2000  # characters
"""Maximum length of an error, a list of warnings, or a piece of evidence. The limit keeps hostile text from hiding other messages."""
MAX_SHOWN_ITEMS = 20  # items
"""Maximum number of literals, problems, warnings, tools or tokens listed in one message, and of items in a list in an example."""
MAX_LISTED = 100  # items
"""Maximum number of problems of one call, mistakes in a request, names or markers to try, attempts to find an unused id,
and samples for an example answer.
"""

# Engines and servers.

MAX_COUNTED = 1_000  # rows
"""Maximum number of parts of an answer printed by `explain --all`."""
MAX_BLOCK = 16_384  # characters
"""Maximum number of characters kept from the end of a prompt, and of bytes read at once from standard input."""
MAX_LINE = 8_000_000  # bytes
"""Maximum size of a line sent by an engine, e.g. with log probabilities, and of a playground request."""
