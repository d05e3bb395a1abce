"""Backends: the engines. Each engine's client turns a `Job`, which contains a prompt, into pieces of text.

`backend` defines the interface of an engine, and a sampler that makes up answers without a model; read `backend` first. `connection`
contains the HTTP client and the base class of the engines with an HTTP API: `completions` (with `prompt_ids` for token ids), `llama_server`
(also Ollama) and `sglang`. `llama_server` can also start a server in this process.

Rules: engines don't use templates and parse nothing. Engines return `Piece`s and raise only `EngineError`. Closing the generator cancels
the engine's work.
"""
