"""One value of a call: its notation, its text, and its text read back as it streams.

In come a codec and a value, or a codec and text in pieces; out goes text, or JSON text. Open `notations` first: it defines and implements
how each codec writes values. To read, `machine` picks the scanner of the codec:

- `scanner`: JSON, Python literals, bare keys, quotes of the format's own (`json_fast_path` is its fast path), and an object inside
  of a JSON string;
- `raw`: text without quotes, up to a marker (`finder`) or to what may follow (`unmarked_ends`), and nested tags.

`resumable` says what all of them have in common: they stop anywhere, go on, and can be copied.

`coercion` then uses the schema to convert a raw text such as `12`.

Rule: a scanner gives the same JSON text at every chunking. What may read otherwise with the next character stays in the
buffer.
"""
