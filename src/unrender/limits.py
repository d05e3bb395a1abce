"""Lists every limit of the library: its value, its unit, and what it bounds.

`scripts/reference.py` writes the last section of `docs/explanation/security.md` from this module. You can change those in `Limits`:

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

# What a caller may change.


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for one template: each rendering, the analysis, and the grammar of one request.

    If a rendering or the source exceeds a limit, it's a `TemplateError`. If the analysis does, the remaining fields keep their defaults,
    with a diagnostic. A tool that is too large accepts any arguments, with a `SchemaWarning`; tools that are too large together are a
    `GrammarError`.
    """

    rendering_steps: int = 2_000_000  # steps
    """Steps of one rendering: loop iterations, calls, filters, lookups and outputs."""
    rendering_characters: int = 10_000_000  # characters
    """Characters of the output, and of any intermediate text; all texts together may be ten times as long."""
    rendering_items: int = 200_000  # items
    """Items of any intermediate list; all lists together may be 25 times as long."""
    rendering_seconds: float = 1.0  # seconds
    """CPU time of the rendering thread, so that the load of the machine doesn't matter."""
    template_characters: int = 200_000  # characters
    """Characters of the template's source."""
    template_nodes: int = 30_000  # nodes
    """Expressions and statements in the template's source. Jinja's compiler needs about a second for this number."""
    template_scopes: int = 500_000  # names
    """Statements that open a scope or a branch, times names, because the compiler checks all names for each of them."""
    analysis_renderings: int = 400  # renderings
    """Number of rendered probes."""
    analysis_characters: int = 3_000_000  # characters
    """Total characters of all renderings, which are kept in memory."""
    analysis_searched: int = 1_000_000  # characters
    """Characters decoded and values compared while searching these renderings for calls."""
    analysis_seconds: float = 3.0  # seconds
    """CPU time of the thread, from the first probe."""
    probe_steps: int = 50_000  # steps
    """Steps of one rendering of the analysis."""
    probe_characters: int = 100_000  # characters
    """Characters of one rendering of the analysis, and of any intermediate text."""
    probe_items: int = 10_000  # items
    """Items of any intermediate list in one rendering of the analysis."""
    probe_seconds: float = 0.25  # seconds
    """CPU time of one rendering of the analysis."""
    tool_parts: int = 50_000  # parts
    """Shapes, values and pattern positions in the expansion of one tool's schema, or of a response schema."""
    tool_characters: int = 500_000  # characters
    """Characters of the names, values and patterns in one tool's schema."""
    tool_depth: int = 64  # levels
    """Nesting depth of a tool's lists and objects; schemas are read less deeply."""
    grammar_parts: int = 100_000  # parts
    """Total parts of all tools of a request."""
    grammar_characters: int = 2_000_000  # characters
    """Total characters of all tools of a request."""
    grammar_steps: int = 1_000_000  # steps
    """Steps to combine free text with the parts that may follow it."""


STANDARD = Limits()

# A process and its files.

CACHE_BYTES = 128_000_000  # bytes
"""Bytes of the cache for later requests: parsed templates, tools and schemas, and results computed from them."""
MAX_STORED = 256  # entries
"""Analyses on disk, and grammars of one model in the gateway; the oldest go first."""
MAX_FILE = 64_000_000  # bytes
"""Bytes of a model file that is read completely, of a string in a GGUF file, of a line of a batch, and of the token ids
that the gateway keeps for one engine."""
MAX_DOCUMENT = 1_000_000  # characters
"""Bytes of a user's format or of a stored analysis; characters of a drawn answer and of a text in the playground; steps to read a prefill,
of which each character takes at least one."""
MAX_GGUF_VALUES = 5_000_000  # values
"""Pairs and items of arrays in a GGUF file that are read or skipped one by one; the largest vocabularies need a fifth."""
MAX_GGUF_DEPTH = 4  # levels
"""Nesting depth of arrays in a GGUF file; known files have none."""

# Values and requests.

MAX_DEPTH = 500  # levels
"""Nesting depth of lists and objects in a message, a tool, or a template's value. Hashing deeper ones
overflows Python's stack, which ends the process."""
MAX_PARSED_DEPTH = 512  # levels
"""Nesting depth of lists and objects in a parsed argument. Python's json module fails near 1,000."""
MAX_VALUES = 1_000_000  # lists and objects
"""Lists and objects in a conversation, or in one tool."""
MAX_TOOLS = 4096  # tools
"""Tools of one request, more than fit into any prompt."""
MAX_MESSAGES = 10_000  # messages
"""Messages of one request, or of a prompt that numbers them; entries checked in the cache folder."""
MAX_COUNT = 10**9
"""Repetitions that an engine can count, and tokens of an answer."""

# Rendering.

MAX_INTEGER_BITS = 8192  # bits
"""Bits of an integer that a template computes. Python itself refuses to print much longer ones."""
MAX_SLOW_TEXT = 100_000  # characters
"""Characters of a text that a template searches or wraps with a slow filter, or that is parsed with all known formats."""
MAX_SLOW_LIST = 400_000  # weight
"""Characters of all items in a list that a template sorts, since sorting compares them."""
MAX_TEXT_COMPARISONS = 100_000_000  # comparisons
"""Character comparisons in a naive text search."""
MAX_SLOW_RENDERINGS = 2  # renderings
"""Renderings of one conversation, measured in the time of the slowest one; also the number of probes that may reach their own limits."""

# Formats and their analysis.

MAX_MARKER = 1_000  # characters
"""Longest marker, or other text of a Format; text before a name or an answer in which attributes and headers are looked for, and
tokens of a prompt's tail that an engine shows."""
MAX_LAYOUT = 32  # characters
"""Whitespace at either end of a marker, or between two JSON tokens, so that a model can't write it forever."""
MAX_TEXT = 16_000  # characters
"""Characters of all markers of a Format together, and of one `why`."""
MAX_ITEMS = 128  # entries
"""Entries of a list of a Format, beginnings of a prompt that are compared, and calls of one answer in the gateway."""
MAX_PARTS = 32  # parts
"""Parts of a skeleton, single numbers that a schema excludes, nesting depth of groups in a pattern, and rounds whose calls a grammar
counts."""
MAX_INDEX = 1_000_000
"""Largest number of the first call."""
MAX_ID = 64  # characters
"""Letters and digits of an id."""
MAX_RETRIES = 8  # tries
"""Repairs of one conversation or template: texts looked for again, missing variables, lengths of ids, refuted claims."""
MAX_PLACES = 400  # places
"""Brackets of one text that are tried, guesses of an example value, places at which a test cuts a text in two, and free choices of a sample:
after them, every choice is for the shortest way out."""

# Schemas and grammars.

MAX_SCHEMA_DEPTH = 48  # levels
"""Levels of schemas and listed values; engines' own JSON readers end soon after twice as many levels."""
MAX_GRAMMAR_DEPTH = 64  # levels
"""Levels of a value that are compared with its schema, and of nested structural tags; deeper ones are EBNF."""
MAX_SCHEMA_PARTS = 50_000  # subschemas
"""Subschemas read for one schema."""
MAX_CONJUNCTS = 200  # subschemas
"""Subschemas that apply to one value."""
MAX_JUDGED = 100_000  # shapes
"""Shapes compared with one value and its parts; beyond this, any value is allowed."""
MAX_OPTIONS = 256  # options
"""Combinations of the branches of several subschemas, items that are written out, beginnings of a node that are listed, and names of
arguments that are looked for."""
MAX_BREAKS = 64  # ways
"""Ways to break a schema, patterns of `patternProperties`, and remainders of `multipleOf` that are written out."""
MAX_FEW = 8
"""Small counts: integers of a range and branches of a `oneOf` that are told apart, open tags, tokens of half a
character, and kept answers that look alike."""
MAX_SMALL = 16
"""Levels to which a schema is broken or an example is guessed, characters of literals and names that are compared, ends of one name that are
tried, names of arguments that raw text is kept free of, spaces of an indent, and answers and stop texts of one request."""
MAX_STATES = 10_000  # states
"""Characters of a pattern with its repetitions written out, the largest `multipleOf`, and pairs of alternatives that are compared."""
MAX_REPETITIONS = 1_000  # repetitions
"""Repetitions that a grammar counts (engines refuse more), and digits to which a template rounds."""
MAX_SCHEMA_DIGITS = 40  # digits
"""Digits of a number in a schema, before the point."""
MAX_INTEGER_DIGITS = 18  # digits
"""Digits of a number without bounds, which engines hold in 64 bits, and of the numbers in quantifiers and JSON pointers."""
MAX_STEPS = 2_000_000  # steps
"""Steps between states to match one text with a pattern; a text that needs more counts as matched."""
MAX_KNOWN_STATES = 512  # entries
"""Sets of states of one pattern, and classes of characters of one alphabet, that are remembered."""
MAX_EXCLUDED_WORD = 100  # characters
"""Characters of a word that a grammar can exclude."""
MAX_COMPARED = 200_000  # parts
"""Beginnings that are compared in one grammar, and parts of ranges that are written to weigh one schema."""
MAX_PIECES = 5_000  # pieces
"""Options taken apart for a lexer, pieces of one object, keys hashed in one go, and steps of a film."""

# Reading answers.

MAX_HEAD = 12  # characters
"""Characters of a literal that the fast path compares; longer matches are left to the instructions."""
MAX_NAME = 1200  # characters
"""Characters of a tool's or an argument's name."""
MAX_BLANK = 64  # characters
"""White space held back at a boundary, and markers that are looked for at the ends of a value."""
MAX_CONTEXT = 4096  # characters
"""Text before a call that is looked at for an open quotation, and tail of a prompt that may show a prefill."""
MAX_WORD = 256  # characters
"""Number or bare word, and text between the brace of a broken call and its closing brace. JSON numbers rarely exceed 25."""
MAX_WORDS = 128  # characters
"""Characters of a call's header that the parser ignores."""
MAX_STACK = 100_000  # entries
"""Rules, choices, loops and tags of a handwritten grammar that are open at once."""
MAX_GIVEN_BACK = 64  # characters
"""Characters of backtracking in a handwritten grammar per character read; text that needs more is malformed."""
FREE_REREADS = 8_192  # characters
"""Characters that may be parsed again, regardless of the text's length; after that, a broken call is plain text."""

# What is shown.

MAX_SHOWN = 200  # characters
"""Characters quoted from a path, a name, a value or a question."""
MAX_REMARK = 2000  # characters
"""Characters of an error, of warnings or of evidence, so that a hostile one can't hide the others."""
MAX_SHOWN_ITEMS = 20  # items
"""Literals, problems, warnings, tools or tokens that one text shows, and items of a list in an example."""
MAX_LISTED = 100  # items
"""Problems of one call, mistakes in a request, items on a page, names or markers of one kind that are tried (likely
ones first), ids that are taken already, and example answers that are drawn."""

# Engines and servers.

MAX_COUNTED = 1_000  # rows
"""Names of tools and reasons that a batch counts apart, and stretches of an answer that are printed."""
MAX_BLOCK = 16_384  # characters
"""Tail of a prompt, and what is read of standard input at once."""
MAX_LINE = 8_000_000  # bytes
"""Bytes of a line that an engine sends (the longest are log probabilities), and of a question to the playground."""
