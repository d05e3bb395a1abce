"""Writes argument values, and parses them as they stream.

Start with `notations`, which defines and implements the notation of each codec. For parsing, `machine` selects the scanner of the codec:

- `scanner`: JSON, Python literals, bare keys, format-specific quotes, and an object inside a JSON string. See also `json_fast_path`.
- `raw`: unquoted text up to a marker (`finder`) or to text that may follow (`unmarked_ends`), and nested tags.

All scanners are `resumable`: they suspend at any character, resume with the next chunk, and can be copied.

`coercion` then uses the schema to convert raw text such as `12`.

Rule: a scanner returns the same JSON text for every chunking. Text whose meaning depends on the next character stays in the buffer.
"""
