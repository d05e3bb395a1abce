"""Unrender inside libraries that run models; each module is imported by its own name and needs that library alone.

In: an engine's tokenizer, prompts and token ids. Out: what the engine wants of a parser: messages, deltas, structural tags, masks.
Open the module of your engine. `vllm` and `sglang` are plug-ins that `registration` puts into the engine by its entry point; both
make their turns in `rendered`, since the engine has rendered the prompt. `transformers` and `tokens` read token ids; `trl`,
`mlx_lm` and `llama_cpp` are functions and classes that a program calls.

Rules: a library is imported only when it's used. An engine starts with a plug-in that does not fit it as it does
without. Which releases fit is said once, by the extras in the package's metadata.
"""
