"""Encodes argument values, and parses them as they stream.

`notations` defines the notation of each codec and encodes values. For parsing, `machine` selects a scanner for the codec:

- `scanner`: JSON, Python literals, bare keys, format-specific quotes, and an object inside a JSON string. See also `json_fast_path`.
- `raw`: nested tags, and unquoted text up to a marker (`finder`) or up to text that may follow the value (`unmarked_ends`).

All scanners are `resumable`: they suspend at any character, resume with the next chunk, and can be copied.

`coercion` uses the schema to convert raw text such as `12` to JSON.

Rule: the returned JSON text doesn't depend on the chunking. Text whose meaning may depend on the next character stays in the buffer.
"""
