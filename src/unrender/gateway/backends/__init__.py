"""Backends: the engines. Each turns a `Job`, which has a prompt, into pieces of text.

`backend` says what an engine is; open it first. `connection` speaks HTTP with one, line by line, and holds what such engines have in
common: `completions` (with `prompt_ids` for token ids), `llama_server` (Ollama too), `sglang`. `transformers` runs a model in this process, and `llama_server` can start
its own server there; `sampler` has no model, and makes answers up.

Rules: an engine knows no template and parses nothing. Whatever comes from one is a `Piece` or an `EngineError`, never another
exception. Whoever closes the generator ends the engine's work.
"""
