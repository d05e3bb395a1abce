"""Lists every limit of the library: its value, what it counts, and why it is there.

`scripts/reference.py` makes `docs/reference/limits.md` of this page: of each value, the unit beside it, and the text below it.

Rules: a limit has one name, here; who needs it imports it. `unrender.bounds` is for those that a caller may change.
"""


# A process.

CACHE_BYTES = 128_000_000  # bytes
"""Weight of all that is kept for later requests: what is read of templates, tools and schemas, and what is made of them."""

# What callers hand over.

DEEPEST_VALUE = 500  # levels
"""Levels of lists and objects inside each other in a message, a tool, a schema, or a template's value. Hashing deeper ones
overflows Python's stack, which ends the process."""
MOST_VALUES = 1_000_000  # lists and objects
"""Lists and objects in a conversation, or in one tool."""
MAX_TOOLS = 4096  # tools
"""More tools than any prompt holds."""

# Templates and their files.

LARGEST_TEMPLATE_FILE = 64_000_000  # bytes
"""Bytes of a file that is read whole."""
LONGEST_PATH = 200  # characters
"""Characters of a path that an error repeats."""
LONGEST_HUB_ERROR = 300  # characters
"""Characters of what the hub's client says that are told; it says it in many lines."""
LONGEST_TEMPLATE_ERROR = 2000  # characters
"""Characters of an error that are kept: a template may raise with any text."""
LONGEST_GGUF_STRING = 64_000_000  # bytes
"""Bytes of a string that is read."""
MOST_GGUF_VALUES = 5_000_000  # values
"""Pairs and items of arrays that are read or skipped one by one; the largest vocabularies need a fifth."""
DEEPEST_GGUF_ARRAY = 4  # levels
"""Arrays in arrays; known files have none."""
LONGEST_INTEGER = 8192  # bits
"""An integer that a template computes. Python itself refuses to print much longer ones."""
LONGEST_SLOW_TEXT = 100_000  # characters
"""A text that a template searches or wraps by means that need microseconds for each character."""
LONGEST_SLOW_LIST = 400_000  # weight
"""A list that a template sorts: sorting compares everything inside."""
MOST_TEXT_COMPARISONS = 100_000_000  # comparisons
"""Comparisons of characters, where a text is searched naively."""
MOST_ODD_KEYS = 5_000  # keys
"""Keys hashed in one go; numbers and tuples can be chosen so that their hashes collide."""
MOST_ROUNDED_DIGITS = 1_000  # digits
"""Digits to which a template rounds a number."""
RENDERING_STEPS = 2_000_000  # steps
"""Rounds of loops, calls, filters, look-ups and outputs."""
RENDERING_CHARACTERS = 10_000_000  # characters
"""Characters of the output, and of any text made on the way; all texts together may be ten times as long."""
RENDERING_ITEMS = 200_000  # items
"""Items of any list made on the way; all lists together may be 25 times as long."""
RENDERING_SECONDS = 1.0  # seconds
"""Processor time of the rendering thread, so that a busy machine changes nothing."""
SLOWEST_RENDERINGS = 2  # renderings
"""One conversation is rendered again to check what it shows, and in other words: all that takes the time of so many."""
TEMPLATE_CHARACTERS = 200_000  # characters
"""Characters of the template itself."""
TEMPLATE_NODES = 30_000  # nodes
"""Expressions and statements of the template. Jinja's compiler needs about a second for so many."""
TEMPLATE_SCOPES = 500_000  # names
"""Statements that open a scope or a branch, times names: for each, the compiler looks at all names."""

# The format.

MAX_MARKER = 1_000  # characters
"""Longest marker, or other text of a Format, in characters."""
MAX_LAYOUT = 32  # characters
"""Longest white space at either end of a marker, in characters."""
MAX_REASON = 4_000  # characters
"""Longest `why`, in characters."""
MAX_ITEMS = 128  # entries
"""Most entries of a list: headers, ends, spellings, ignored and preserved markers, other syntaxes."""
MAX_TEXT = 16_000  # characters
"""Characters of all markers of a Format together."""
MAX_PARTS = 32  # parts
"""Most parts of a skeleton."""
MAX_INDENT = 16  # spaces
"""Most spaces per level of pretty-printed JSON."""
MAX_INDEX = 1_000_000
"""Largest number of the first call."""
LONGEST_ID = 64  # characters
"""Most letters and digits of an id."""
LARGEST_JSON_FILE = 1_000_000  # bytes
"""Bytes of a user's format, or of a stored analysis. Those of the library have at most a few thousand."""

# The analysis.

MOST_STORED_ANALYSES = 256  # files
"""Analyses that are kept; beyond that, those that were written first go."""
MOST_FOLDER_ENTRIES = 10_000  # entries
"""Entries of the folder that are looked at when files are removed: it may be full of other people's."""
MOST_TRIED_NAMES = 100  # names
"""Variables, fields or markers of one kind that are tried, in order of how likely they are; the largest known count is 30."""
MOST_LOST = 8  # messages
"""Messages of one conversation that are looked for again where the prompt does not hold their texts as they are."""
MOST_READ_BACK = 4_000  # messages
"""Messages of a prompt that are written again, where a template numbers them."""
MOST_REPAIRS = 6  # variables
"""Missing variables that are supplied before the template is given up."""
MOST_LENGTHS_OF_IDS = 3  # lengths
"""Numbers in a template's complaint about ids that are tried as their length, with letters and with digits alone."""
MOST_REFUTED_CLAIMS = 3  # claims
"""Claims that are given up one after the other."""
LONGEST_EVIDENCE = 2000  # characters
"""Characters of a rendering that are kept."""
LONGEST_ATTRIBUTE_LINE = 1000  # characters
"""Characters before a name in which an attribute is looked for, which takes time by their square."""
MOST_BRACKETS = 400  # brackets
"""Brackets tried before a text is taken to hold no JSON."""
LONGEST_HEADER = 1000  # characters
"""Characters at the end of a lead in which the header is looked for, which takes time by their square."""
MOST_BEGINNINGS = 64  # texts
"""Beginnings of a prompt with which an answer is compared."""
ANALYSIS_RENDERINGS = 400  # renderings
"""Probes that are rendered."""
ANALYSIS_CHARACTERS = 3_000_000  # characters
"""Characters of all renderings together, which are kept in memory."""
ANALYSIS_SEARCHED = 1_000_000  # characters
"""Characters decoded and values compared in the search for calls in these renderings."""
ANALYSIS_SECONDS = 3.0  # seconds
"""Processor time of the thread, from the first probe on."""
LONGEST_PAUSE = 1.0  # seconds
"""Time between two looks at the clock that counts: a machine that stands still for longer is not the template's fault."""
ANALYSIS_EXHAUSTED = 2  # renderings
"""Renderings that may run into their own limits; all others would as well."""
PROBE_STEPS = 50_000  # steps
"""The same as `RENDERING_STEPS` for one rendering of the analysis."""
PROBE_CHARACTERS = 100_000  # characters
"""The same as `RENDERING_CHARACTERS` for one rendering of the analysis."""
PROBE_ITEMS = 10_000  # items
"""The same as `RENDERING_ITEMS` for one rendering of the analysis."""
PROBE_SECONDS = 0.25  # seconds
"""The same as `RENDERING_SECONDS` for one rendering of the analysis."""

# JSON Schema.

MAX_SCHEMA_DEPTH = 48  # levels
"""How deep schemas and listed values are nested at most; engines' own JSON readers end soon after twice as many levels."""
MAX_SCHEMA_DIGITS = 40  # digits
"""Digits of a number in a schema, before the point."""
MAX_COUNT = 10**9  # repetitions
"""Repetitions that are counted where an engine does it by itself."""
MAX_CONJUNCTS_READ = 50_000  # subschemas
"""Conjuncts that are read for one schema."""
MAX_CONJUNCTS = 200  # subschemas
"""Subschemas that hold for one value."""
MAX_EXCLUSIVE_BRANCHES = 8  # branches
"""Branches of a `oneOf` that are told apart by breaking all others."""
MAX_ALTERNATIVES = 256  # combinations
"""Combinations of the branches of several conjuncts. The branches of a single `anyOf` are not limited."""
MAX_COMPLEMENT_DEPTH = 16  # levels
"""How deep a schema is broken."""
MAX_BREAKS = 64  # schemas
"""Ways to break a schema that are written down."""
MAX_INDEX_DIGITS = 9  # digits
"""Digits of an index in a JSON pointer."""
MAX_KEY_PATTERNS = 64  # patterns
"""Patterns of `patternProperties` that are read for one object."""
MAX_ARRANGED = 256  # items
"""Items of all the lists without doubles that are written out."""
MAX_RANGE = 8  # numbers
"""Whole numbers between two bounds that count as few."""
MAX_STEP = 10_000
"""The largest `multipleOf`: engines count in as many states."""
MAX_FORBIDDEN = 32  # numbers
"""Numbers that are left out one by one."""
MAX_PATTERN = 10_000  # characters
"""Characters of a pattern, and of what it says with its repetitions written out."""
MAX_REPETITIONS = 1_000  # repetitions
"""The highest number in a quantifier: engines refuse more."""
MAX_GROUPS = 32  # levels
"""How deep groups may be nested."""
MAX_QUANTIFIER_DIGITS = 9  # digits
"""Digits of a number in a quantifier that are read at all."""
MAX_WORK = 2_000_000  # steps
"""Steps between states for one text; a text that needs more counts as matched."""
MAX_KNOWN_STATES = 1_000  # sets of states
"""Sets of states that the automaton of a pattern keeps the transitions of."""
MAX_JUDGED = 100_000  # shapes
"""Shapes that are compared with one value and its parts; beyond that everything is admitted."""
MOST_PROBLEMS = 100  # problems
"""Problems of one call's arguments that are named."""
LONGEST_PROBLEM_VALUE = 100  # characters
"""Characters of a value that a problem shows."""
MAX_VALUE_DEPTH = 64  # levels
"""How deep a value is looked at."""
MAX_COMPARISONS = 10_000  # pairs
"""Pairs of alternatives that are compared to tell two shapes apart."""

# Grammars.

MAX_REPEATS = 1000  # repetitions
"""Longer strings and lists are not counted where the rule is spelled out: engines refuse more repetitions."""
MAX_INTEGER_DIGITS = 18  # digits
"""Digits of a number without bounds: what every engine's 64-bit integers hold, and no model runs on for ever."""
LARGEST_MODULUS = 64
"""The largest `multipleOf` whose rests are counted digit by digit."""
MAX_SPACE = 32  # characters
"""White space between two tokens of JSON: enough for any indentation, and a model cannot run on for ever."""
MAX_EXCLUDED_WORD = 100  # characters
"""Longer words are not told apart from others."""
MOST_CLASSES = 512  # classes
"""Classes of characters that are remembered for an alphabet."""
MOST_EXCLUDED_NAMES = 16  # names
"""Arguments whose names raw text is kept free of; where there are more, it is kept free of what begins any argument."""
MOST_ROUNDS = 32  # rounds
"""Rounds of a repetition that are written out one by one, to count the calls in them."""
MOST_RANGES = 200_000  # parts
"""Parts of ranges that are written to weigh one schema: more than the standard budget allows all tools."""
MOST_WAYS = 256  # texts
"""Beginnings of a node that are listed, and ways to go on that are unfolded; where there are more, the node is not looked
into."""
MOST_COMPARED = 150_000  # texts
"""Beginnings that are compared in one grammar."""
MOST_APART = 4_000  # options
"""Options that are taken apart for a lexer; a grammar of tools needs a few dozen, and patterns can have no end of them."""
MOST_BRACES = 200  # braces
"""Braces of one text that are looked at."""
MOST_OBJECT_PIECES = 5_000  # pieces
"""Pieces of one object that are looked at."""
MAX_RESUME_STEPS = 1_000_000  # steps
"""Steps to read what the prompt has begun; each character of free text may be the last, so it takes one at least."""
MAX_TAG_DEPTH = 64  # levels
"""A tag that would be nested deeper is handed over as EBNF: readers of JSON have limits of their own."""
SAMPLE_STEPS = 400  # steps
"""Steps after which every choice is for the shortest way out."""
LONGEST_SAMPLE = 1_000_000  # characters
"""Characters that a drawn text may have; schemas can ask for strings that are longer."""
TOOL_PARTS = 50_000  # parts
"""Shapes, values and places in patterns that one tool's schema may unfold into; a response schema may as well."""
TOOL_CHARACTERS = 500_000  # characters
"""Characters of the names, values and patterns in one tool's schema."""
TOOL_DEPTH = 64  # levels
"""How deep a tool's lists and objects may be nested; of a schema less is read."""
GRAMMAR_PARTS = 100_000  # parts
"""The parts of all tools of a request together."""
GRAMMAR_CHARACTERS = 2_000_000  # characters
"""The characters of all tools of a request together."""
GRAMMAR_STEPS = 1_000_000  # steps
"""Steps to join free text with what may follow it."""

# Reading answers.

MAX_NAME = 1200  # characters
"""Longest tool or argument name, in characters."""
MAX_SIGN = 16  # characters
"""Longest beginnings of all tools' names together that free text may not write behind a marker which prose mentions."""
MAX_BLANK = 64  # characters
"""White space held back at a boundary, in characters; more of it is content."""
MAX_CONTEXT = 4096  # characters
"""Text before a call that is looked at for an open quotation, in characters."""
MOST_OPEN_TAGS = 8  # tags
"""Open tags before a call of which one may close after it."""
MAX_WORD = 256  # characters
"""Longest number or bare word, in characters; longer ones are not values. JSON numbers rarely exceed 25."""
MAX_PARSED_DEPTH = 512  # levels
"""Deepest nesting of lists and objects; Python's own json module gives up near 1,000."""
MAX_BROKEN = 256  # characters
"""Longest text between the brace of a broken call and its closing brace, in characters; longer text is content."""
MAX_WORDS = 128  # characters
"""Longest run of words in a call's header that say nothing to the parser, in characters."""
MAX_STOPS = 16  # places
"""Places inside one word where it may end, that are tried."""
MOST_FOLLOWING_NAMES = 256  # names
"""Arguments whose names are looked for; where a tool has more, any name counts."""
MAX_KNOWN_ARGUMENTS = 256  # arguments
"""Arguments of a tool whose types stay known."""
MOST_REFUSED_IDS = 100  # ids
"""Ids of a caller's maker that are taken already, in a row; then a random one is given."""
MAX_STACK = 100_000  # entries
"""Rules, choices, loops and tags of a grammar made by hand that are open at once."""
MAX_GIVEN_BACK = 64  # characters
"""Characters that a grammar made by hand may give back in all, for each character read; what needs more is malformed."""
FREE_GIVEN_BACK = 10_000  # characters
"""Characters that a grammar made by hand may give back whatever the text's length."""
FREE_REREADS = 8_192  # characters
"""Characters that may be read again for nothing, beside as many as the output has; then what breaks off is text as it is."""
LONGEST_REMAINS = 64  # characters
"""Characters of the markers around a value that are looked for at its ends."""
LONGEST_HEAD = 12  # characters
"""Characters of a literal that are looked at: what agrees in so many is left to the instructions."""

# Explanations and tests.

MOST_SHOWN_LITERALS = 12  # items
"""Literals, and other items of one field, that are shown; then how many more there are."""
MAX_COMPLAINTS = 20  # sentences
"""Sentences about one call."""
MAX_COMPLAINT_DEPTH = 32  # levels
"""How deep arguments are looked at."""
DEEPEST_EXAMPLE = 12  # levels
"""Levels of schemas inside each other for which an example value is guessed; what is deeper is drawn from the grammar."""
LONGEST_EXAMPLE_LIST = 20  # items
"""Items of a list in an example value; a longer one is drawn from the grammar."""
LONGEST_QUESTION = 200  # characters
"""Characters of a question, or of a result, that an example answer repeats."""
MOST_EXAMPLE_GUESSES = 500  # values
"""Values that are tried for one schema; then the grammar draws what is sought."""
MOST_EXAMPLE_DRAWS = 100  # answers
"""Answers that are drawn to find one with the parts of an example answer."""
MOST_PAIRS = 500  # places
"""Places at which a text is cut in two; a longer text is cut at so many places, spread evenly."""

# Engines.

TAIL_TOKENS = 1024  # tokens
"""Tokens of a prompt that are looked at: more than a header and what a generation prompt writes after it."""
TAIL_CHARACTERS = 16_384  # characters
"""Characters of a prompt that are looked at."""
MAX_HELD = 8  # tokens
"""Tokens held for a character that is not all there; no character of UTF-8 takes more than four."""

# The gateway.

MOST_CALLS = 128  # calls
"""Calls of one answer, after which it is ended. Real tasks need a dozen at once; a small model may repeat one without end. A grammar
does not hold the bound: some would be a thousand times as large."""
MOST_CHOICES = 16  # choices
"""Answers to one request."""
MOST_STOPS = 16  # texts
"""Stop texts of one request."""
MOST_MESSAGES = 10_000  # messages
"""Messages of one request."""
MOST_TOKENS = 10_000_000  # tokens
"""Tokens that an answer may be asked to have."""
MOST_TOP_LOGPROBS = 20  # tokens
"""Likely tokens at one place, with their log probabilities."""
MOST_COMPLETION_LOGPROBS = 5  # tokens
"""The same where a bare prompt is completed: OpenAI allows no more."""
MOST_GRAMMARS = 256  # grammars
"""Grammars that are kept for one model."""
MOST_ALIKE = 8  # answers
"""Kept answers to one conversation that look alike to a client."""
LONGEST_HEAD_OF_REQUEST = 16_384  # bytes
"""Bytes of a request line and its headers."""
MOST_HEADERS = 100  # headers
"""Headers of one request."""
LONGEST_CHUNK_SIZE = 18  # bytes
"""Bytes of a chunk's size with its line end."""
LONGEST_ENGINE_LINE = 4_000_000  # bytes
"""Bytes of a line that an engine sends; the longest are log probabilities, or the whole text again."""
LONGEST_WARNING_HEADER = 1000  # characters
"""Characters of warnings that a header repeats; the body has them whole."""
MOST_MISTAKES = 100  # mistakes
"""Mistakes in a request of which the deepest is told; what has more was meant as something else."""
MOST_PROBE_TOKENS = 16  # tokens
"""Tokens of a probe's answer."""
MOST_LISTED = 100  # items
"""Items of a stored conversation on one page."""

# Batches.

LONGEST_BATCH_LINE = 64_000_000  # bytes
"""Bytes; a longer line is not kept, and is a bad row."""
MOST_DRAWN = 30  # rows
"""Tools and reasons that are drawn."""
LONGEST_PROMPT_TAIL = 4_096  # characters
"""Characters of a prompt that can show what it has begun."""
MOST_WARNINGS = 20  # warnings
"""Warnings of one answer; a hostile one could cause any number."""
MOST_COUNTED_NAMES = 1_000  # names
"""Tools and reasons that are counted by name."""
LONGEST_COUNTED_NAME = 200  # characters
"""Characters of a name by which is counted."""

# The command line and the playground.

MOST_SUMMED = 10  # rows
"""Tools and reasons that are printed."""
MOST_STRETCHES = 1000  # stretches
"""Stretches that are shown."""
LONGEST_STRETCH = 240  # characters
"""Characters of one stretch that are shown; of longer ones the beginning and the end."""
LONGEST_PRINTED_VALUE = 300  # characters
"""Characters of a value that are printed: what is read wrongly is often the whole prompt."""
READ_AT_MOST = 65536  # bytes
"""Bytes; what arrives earlier is parsed earlier."""
LONGEST_REMARK = 2000  # characters
"""Characters of an error or a remark that are printed: a hostile one must not bury what else was said."""
LONGEST_PLAYGROUND_TEXT = 1_000_000  # characters
"""Characters of any text that is sent."""
MOST_FILM_STEPS = 5_000  # steps
"""Steps of a film."""
LONGEST_BODY = 8_000_000  # bytes
"""Bytes of a question."""
