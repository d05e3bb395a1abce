"""Lists every limit of the library: its default, what it counts, and why it is there; `LIMITS` is the table of them all.

Rules: a limit has one name, here; who needs it imports it. `unrender.bounds` is for those that a caller may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit. `unit` is empty for a plain number."""

    name: str
    default: float
    unit: str
    reason: str
    subject: str


_said: list[tuple[str, str, str]] = []
_subject = ""


def _section(subject: str) -> None:
    """Begin the limits of a subject."""
    global _subject  # noqa: PLW0603 -- while this module is read
    _subject = subject


def _limit(default: _Number, unit: str, reason: str) -> _Number:
    """Note what the next limit is for, and return its default; the name is what it is bound to."""
    _said.append((_subject, unit, reason))
    return default


_section("A process")
CACHE_BYTES = _limit(
    128_000_000,
    "bytes",
    "Weight of all that is kept for later requests: what is read of templates, tools and schemas, and what is made of them.",
)


_section("What callers hand over")
DEEPEST_VALUE = _limit(
    500,
    "levels",
    "Levels of lists and objects inside each other in a message, a tool, a schema, or a template's value. "
    "Hashing deeper ones overflows Python's stack, which ends the process.",
)
MOST_VALUES = _limit(1_000_000, "lists and objects", "Lists and objects in a conversation, or in one tool.")
MAX_TOOLS = _limit(4096, "tools", "More tools than any prompt holds.")
DEEPEST_EXAMPLE = _limit(4, "levels", "Levels of an example's nested values; deeper ones are left out.")


_section("Templates and their files")
LARGEST_TEMPLATE_FILE = _limit(64_000_000, "bytes", "Bytes of a file that is read whole.")
LONGEST_PATH = _limit(200, "characters", "Characters of a path that an error repeats.")
LONGEST_HUB_ERROR = _limit(
    300,
    "characters",
    "Characters of what the hub's client says that are told; it says it in many lines.",
)
LONGEST_TEMPLATE_ERROR = _limit(
    2000,
    "characters",
    "Characters of an error that are kept: a template may raise with any text.",
)
LONGEST_GGUF_STRING = _limit(64_000_000, "bytes", "Bytes of a string that is read.")
MOST_GGUF_VALUES = _limit(
    5_000_000,
    "values",
    "Pairs and items of arrays that are read or skipped one by one; the largest vocabularies need a fifth.",
)
DEEPEST_GGUF_ARRAY = _limit(4, "levels", "Arrays in arrays; known files have none.")
LONGEST_INTEGER = _limit(
    8192,
    "bits",
    "An integer that a template computes. Python itself refuses to print much longer ones.",
)
LONGEST_SLOW_TEXT = _limit(
    100_000,
    "characters",
    "A text that a template searches or wraps by means that need microseconds for each character.",
)
LONGEST_SLOW_LIST = _limit(400_000, "weight", "A list that a template sorts: sorting compares everything inside.")
MOST_TEXT_COMPARISONS = _limit(
    100_000_000,
    "comparisons",
    "Comparisons of characters, where a text is searched naively.",
)
MOST_ODD_KEYS = _limit(
    5_000,
    "keys",
    "Keys hashed in one go; numbers and tuples can be chosen so that their hashes collide.",
)
MOST_ROUNDED_DIGITS = _limit(1_000, "digits", "Digits to which a template rounds a number.")
RENDERING_STEPS = _limit(2_000_000, "steps", "Rounds of loops, calls, filters, look-ups and outputs.")
RENDERING_CHARACTERS = _limit(
    10_000_000,
    "characters",
    "Characters of the output, and of any text made on the way; all texts together may be ten times as long.",
)
RENDERING_ITEMS = _limit(
    200_000,
    "items",
    "Items of any list made on the way; all lists together may be 25 times as long.",
)
RENDERING_SECONDS = _limit(
    1.0,
    "seconds",
    "Processor time of the rendering thread, so that a busy machine changes nothing.",
)
TEMPLATE_CHARACTERS = _limit(200_000, "characters", "Characters of the template itself.")
TEMPLATE_NODES = _limit(
    30_000,
    "nodes",
    "Expressions and statements of the template. Jinja's compiler needs about a second for so many.",
)
TEMPLATE_SCOPES = _limit(
    500_000,
    "names",
    "Statements that open a scope or a branch, times names: for each, the compiler looks at all names.",
)


_section("The format")
MAX_MARKER = _limit(1_000, "characters", "Longest marker, or other text of a Format, in characters.")
MAX_LAYOUT = _limit(32, "characters", "Longest white space at either end of a marker, in characters.")
MAX_REASON = _limit(4_000, "characters", "Longest `why`, in characters.")
MAX_ITEMS = _limit(
    128,
    "entries",
    "Most entries of a list: headers, ends, spellings, ignored and preserved markers, other syntaxes.",
)
MAX_TEXT = _limit(16_000, "characters", "Characters of all markers of a Format together.")
MAX_PARTS = _limit(32, "parts", "Most parts of a skeleton.")
MAX_INDENT = _limit(16, "spaces", "Most spaces per level of pretty-printed JSON.")
MAX_INDEX = _limit(1_000_000, "", "Largest number of the first call.")
MAX_ENVELOPE_DEPTH = _limit(8, "keys", "Most keys of an envelope's path.")
LONGEST_ID = _limit(64, "characters", "Most letters and digits of an id.")
LARGEST_JSON_FILE = _limit(
    1_000_000,
    "bytes",
    "Bytes of a user's format, or of a stored analysis. Those of the library have at most a few thousand.",
)


_section("The analysis")
MOST_STORED_ANALYSES = _limit(256, "files", "Analyses that are kept; beyond that, those that were written first go.")
MOST_FOLDER_ENTRIES = _limit(
    10_000,
    "entries",
    "Entries of the folder that are looked at when files are removed: it may be full of other people's.",
)
MOST_TRIED_NAMES = _limit(
    100,
    "names",
    "Variables, fields or markers of one kind that are tried, in order of how likely they are; the "
    "largest known count is 30.",
)
MOST_REPAIRS = _limit(6, "variables", "Missing variables that are supplied before the template is given up.")
MOST_REFUTED_CLAIMS = _limit(3, "claims", "Claims that are given up one after the other.")
LONGEST_EVIDENCE = _limit(2000, "characters", "Characters of a rendering that are kept.")
LONGEST_ATTRIBUTE_LINE = _limit(
    1000,
    "characters",
    "Characters before a name in which an attribute is looked for, which takes time by their square.",
)
MOST_BRACKETS = _limit(400, "brackets", "Brackets tried before a text is taken to hold no JSON.")
LONGEST_HEADER = _limit(
    1000,
    "characters",
    "Characters at the end of a lead in which the header is looked for, which takes time by their square.",
)
MOST_BEGINNINGS = _limit(64, "texts", "Beginnings of a prompt with which an answer is compared.")
ANALYSIS_RENDERINGS = _limit(400, "renderings", "Probes that are rendered.")
ANALYSIS_CHARACTERS = _limit(
    3_000_000,
    "characters",
    "Characters of all renderings together, which are kept in memory.",
)
ANALYSIS_SECONDS = _limit(3.0, "seconds", "Processor time of the thread, from the first probe on.")
ANALYSIS_EXHAUSTED = _limit(2, "renderings", "Renderings that may run into their own limits; all others would as well.")
PROBE_STEPS = _limit(50_000, "steps", "The same as `RENDERING_STEPS` for one rendering of the analysis.")
PROBE_CHARACTERS = _limit(
    100_000, "characters", "The same as `RENDERING_CHARACTERS` for one rendering of the analysis."
)
PROBE_ITEMS = _limit(10_000, "items", "The same as `RENDERING_ITEMS` for one rendering of the analysis.")
PROBE_SECONDS = _limit(0.25, "seconds", "The same as `RENDERING_SECONDS` for one rendering of the analysis.")


_section("JSON Schema")
MAX_SCHEMA_DEPTH = _limit(
    48,
    "levels",
    "How deep schemas and listed values are nested at most; engines' own JSON readers end soon after "
    "twice as many levels.",
)
MAX_SCHEMA_DIGITS = _limit(40, "digits", "Digits of a number in a schema, before the point.")
MAX_COUNT = _limit(10**9, "repetitions", "Repetitions that are counted where an engine does it by itself.")
MAX_CONJUNCTS_READ = _limit(50_000, "subschemas", "Conjuncts that are read for one schema.")
MAX_CONJUNCTS = _limit(200, "subschemas", "Subschemas that hold for one value.")
MAX_EXCLUSIVE_BRANCHES = _limit(8, "branches", "Branches of a `oneOf` that are told apart by breaking all others.")
MAX_ALTERNATIVES = _limit(
    256,
    "combinations",
    "Combinations of the branches of several conjuncts. The branches of a single `anyOf` are not limited.",
)
MAX_COMPLEMENT_DEPTH = _limit(16, "levels", "How deep a schema is broken.")
MAX_BREAKS = _limit(64, "schemas", "Ways to break a schema that are written down.")
MAX_INDEX_DIGITS = _limit(9, "digits", "Digits of an index in a JSON pointer.")
MAX_KEY_PATTERNS = _limit(64, "patterns", "Patterns of `patternProperties` that are read for one object.")
MAX_ARRANGED = _limit(256, "items", "Items of all the lists without doubles that are written out.")
MAX_RANGE = _limit(8, "numbers", "Whole numbers between two bounds that count as few.")
MAX_STEP = _limit(10_000, "", "The largest `multipleOf`: engines count in as many states.")
MAX_FORBIDDEN = _limit(32, "numbers", "Numbers that are left out one by one.")
MAX_PATTERN = _limit(
    10_000,
    "characters",
    "Characters of a pattern, and of what it says with its repetitions written out.",
)
MAX_REPETITIONS = _limit(1_000, "repetitions", "The highest number in a quantifier: engines refuse more.")
MAX_GROUPS = _limit(32, "levels", "How deep groups may be nested.")
MAX_QUANTIFIER_DIGITS = _limit(9, "digits", "Digits of a number in a quantifier that are read at all.")
MAX_WORK = _limit(2_000_000, "steps", "Steps between states for one text; a text that needs more counts as matched.")
MAX_KNOWN_STATES = _limit(
    1_000,
    "sets of states",
    "Sets of states that the automaton of a pattern keeps the transitions of.",
)
MAX_JUDGED = _limit(
    100_000,
    "shapes",
    "Shapes that are compared with one value and its parts; beyond that everything is admitted.",
)
MAX_VALUE_DEPTH = _limit(64, "levels", "How deep a value is looked at.")
MAX_COMPARISONS = _limit(10_000, "pairs", "Pairs of alternatives that are compared to tell two shapes apart.")


_section("Grammars")
MAX_REPEATS = _limit(
    1000,
    "repetitions",
    "Longer strings and lists are not counted where the rule is spelled out: engines refuse more repetitions.",
)
MAX_INTEGER_DIGITS = _limit(
    18,
    "digits",
    "Digits of a number without bounds: what every engine's 64-bit integers hold, and no model runs on for ever.",
)
LARGEST_MODULUS = _limit(64, "", "The largest `multipleOf` whose rests are counted digit by digit.")
MAX_SPACE = _limit(
    32,
    "characters",
    "White space between two tokens of JSON: enough for any indentation, and a model cannot run on for ever.",
)
MAX_EXCLUDED_WORD = _limit(100, "characters", "Longer words are not told apart from others.")
MOST_CLASSES = _limit(512, "classes", "Classes of characters that are remembered for an alphabet.")
MOST_EXCLUDED_NAMES = _limit(
    16,
    "names",
    "Arguments whose names raw text is kept free of; where there are more, it is kept free of what begins "
    "any argument.",
)
MOST_ROUNDS = _limit(
    32,
    "rounds",
    "Rounds of a repetition that are written out one by one, to count the calls in them.",
)
MOST_RANGES = _limit(
    200_000,
    "parts",
    "Parts of ranges that are written to weigh one schema: more than the standard budget allows all tools.",
)
MOST_WAYS = _limit(
    256,
    "texts",
    "Beginnings of a node that are listed, and ways to go on that are unfolded; where there are more, the "
    "node is not looked into.",
)
MOST_COMPARED = _limit(150_000, "texts", "Beginnings that are compared in one grammar.")
MOST_APART = _limit(
    4_000,
    "options",
    "Options that are taken apart for a lexer; a grammar of tools needs a few dozen, and patterns can "
    "have no end of them.",
)
MOST_BRACES = _limit(200, "braces", "Braces of one text that are looked at.")
MOST_OBJECT_PIECES = _limit(5_000, "pieces", "Pieces of one object that are looked at.")
MAX_RESUME_STEPS = _limit(
    1_000_000,
    "steps",
    "Steps to read what the prompt has begun; each character of free text may be the last, so it takes one at least.",
)
MAX_TAG_DEPTH = _limit(
    64,
    "levels",
    "A tag that would be nested deeper is handed over as EBNF: readers of JSON have limits of their own.",
)
SAMPLE_STEPS = _limit(400, "steps", "Steps after which every choice is for the shortest way out.")
LONGEST_SAMPLE = _limit(
    1_000_000,
    "characters",
    "Characters that a drawn text may have; schemas can ask for strings that are longer.",
)
TOOL_PARTS = _limit(
    50_000,
    "parts",
    "Shapes, values and places in patterns that one tool's schema may unfold into; a response schema may as well.",
)
TOOL_CHARACTERS = _limit(500_000, "characters", "Characters of the names, values and patterns in one tool's schema.")
TOOL_DEPTH = _limit(64, "levels", "How deep a tool's lists and objects may be nested; of a schema less is read.")
GRAMMAR_PARTS = _limit(100_000, "parts", "The parts of all tools of a request together.")
GRAMMAR_CHARACTERS = _limit(2_000_000, "characters", "The characters of all tools of a request together.")
GRAMMAR_STEPS = _limit(1_000_000, "steps", "Steps to join free text with what may follow it.")


_section("Reading answers")
MAX_NAME = _limit(1200, "characters", "Longest tool or argument name, in characters.")
MAX_BLANK = _limit(64, "characters", "White space held back at a boundary, in characters; more of it is content.")
MAX_WORD = _limit(
    256,
    "characters",
    "Longest number or bare word, in characters; longer ones are not values. JSON numbers rarely exceed 25.",
)
MAX_PARSED_DEPTH = _limit(
    512,
    "levels",
    "Deepest nesting of lists and objects; Python's own json module gives up near 1,000.",
)
MAX_BROKEN = _limit(
    256,
    "characters",
    "Longest text between the brace of a broken call and its closing brace, in characters; longer text is content.",
)
MAX_WORDS = _limit(
    128,
    "characters",
    "Longest run of words in a call's header that say nothing to the parser, in characters.",
)
MAX_STOPS = _limit(16, "places", "Places inside one word where it may end, that are tried.")
MOST_FOLLOWING_NAMES = _limit(
    256,
    "names",
    "Arguments whose names are looked for; where a tool has more, any name counts.",
)
MAX_KNOWN_ARGUMENTS = _limit(256, "arguments", "Arguments of a tool whose types stay known.")
MOST_REFUSED_IDS = _limit(
    100,
    "ids",
    "Ids of a caller's maker that are taken already, in a row; then a random one is given.",
)
MAX_STACK = _limit(
    100_000, "entries", "Rules, choices, loops and tags of a grammar made by hand that are open at once."
)
MAX_GIVEN_BACK = _limit(
    64,
    "characters",
    "Characters that a grammar made by hand may give back in all, for each character read; what needs more is malformed.",
)
FREE_GIVEN_BACK = _limit(
    10_000, "characters", "Characters that a grammar made by hand may give back whatever the text's length."
)
FREE_REREADS = _limit(
    8_192,
    "characters",
    "Characters that may be read again for nothing, beside as many as the output has; then what breaks "
    "off is text as it is.",
)
LONGEST_HEAD = _limit(
    12,
    "characters",
    "Characters of a literal that are looked at: what agrees in so many is left to the instructions.",
)


_section("Explanations and tests")
MOST_SHOWN_LITERALS = _limit(
    12,
    "items",
    "Literals, and other items of one field, that are shown; then how many more there are.",
)
MAX_COMPLAINTS = _limit(20, "sentences", "Sentences about one call.")
MAX_COMPLAINT_DEPTH = _limit(32, "levels", "How deep arguments are looked at.")
MOST_PAIRS = _limit(
    500,
    "places",
    "Places at which a text is cut in two; a longer text is cut at so many places, spread evenly.",
)


_section("Engines")
TAIL_TOKENS = _limit(
    1024,
    "tokens",
    "Tokens of a prompt that are looked at: more than a header and what a generation prompt writes after it.",
)
TAIL_CHARACTERS = _limit(16_384, "characters", "Characters of a prompt that are looked at.")
MAX_HELD = _limit(
    8,
    "tokens",
    "Tokens held for a character that is not all there; no character of UTF-8 takes more than four.",
)


_section("The gateway")
MOST_CHOICES = _limit(16, "choices", "Answers to one request.")
MOST_STOPS = _limit(16, "texts", "Stop texts of one request.")
MOST_MESSAGES = _limit(10_000, "messages", "Messages of one request.")
MOST_TOKENS = _limit(10_000_000, "tokens", "Tokens that an answer may be asked to have.")
MOST_TOP_LOGPROBS = _limit(20, "tokens", "Likely tokens at one place, with their log probabilities.")
MOST_COMPLETION_LOGPROBS = _limit(5, "tokens", "The same where a bare prompt is completed: OpenAI allows no more.")
MOST_GRAMMARS = _limit(256, "grammars", "Grammars that are kept for one model.")
LONGEST_HEAD_OF_REQUEST = _limit(16_384, "bytes", "Bytes of a request line and its headers.")
MOST_HEADERS = _limit(100, "headers", "Headers of one request.")
LONGEST_CHUNK_SIZE = _limit(18, "bytes", "Bytes of a chunk's size with its line end.")
LONGEST_ENGINE_LINE = _limit(
    4_000_000,
    "bytes",
    "Bytes of a line that an engine sends; the longest are log probabilities, or the whole text again.",
)
LONGEST_WARNING_HEADER = _limit(
    1000,
    "characters",
    "Characters of warnings that a header repeats; the body has them whole.",
)
MOST_PROBE_TOKENS = _limit(16, "tokens", "Tokens of a probe's answer.")
MOST_LISTED = _limit(100, "items", "Items of a stored conversation on one page.")


_section("Batches")
LONGEST_BATCH_LINE = _limit(64_000_000, "bytes", "Bytes; a longer line is not kept, and is a bad row.")
MOST_DRAWN = _limit(30, "rows", "Tools and reasons that are drawn.")
LONGEST_PROMPT_TAIL = _limit(4_096, "characters", "Characters of a prompt that can show what it has begun.")
MOST_WARNINGS = _limit(20, "warnings", "Warnings of one answer; a hostile one could cause any number.")
MOST_COUNTED_NAMES = _limit(1_000, "names", "Tools and reasons that are counted by name.")
LONGEST_COUNTED_NAME = _limit(200, "characters", "Characters of a name by which is counted.")


_section("The command line and the playground")
MOST_SUMMED = _limit(10, "rows", "Tools and reasons that are printed.")
MOST_STRETCHES = _limit(1000, "stretches", "Stretches that are shown.")
LONGEST_STRETCH = _limit(
    240,
    "characters",
    "Characters of one stretch that are shown; of longer ones the beginning and the end.",
)
LONGEST_PRINTED_VALUE = _limit(
    300,
    "characters",
    "Characters of a value that are printed: what is read wrongly is often the whole prompt.",
)
READ_AT_MOST = _limit(65536, "bytes", "Bytes; what arrives earlier is parsed earlier.")
LONGEST_REMARK = _limit(
    2000,
    "characters",
    "Characters of an error or a remark that are printed: a hostile one must not bury what else was said.",
)
LONGEST_PLAYGROUND_TEXT = _limit(1_000_000, "characters", "Characters of any text that is sent.")
MOST_FILM_STEPS = _limit(5_000, "steps", "Steps of a film.")
LONGEST_BODY = _limit(8_000_000, "bytes", "Bytes of a question.")


LIMITS: tuple[Limit, ...] = tuple(
    Limit(name=name, default=default, unit=unit, reason=reason, subject=subject)
    for (name, default), (subject, unit, reason) in zip(
        [(name, value) for name, value in list(globals().items()) if name.isupper() and name[0] != "_"],
        _said,
        strict=True,
    )
)
"""All limits, in the order of the module."""
