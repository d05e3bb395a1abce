"""Integrations with libraries that run or train models, with one module for each library.

`vllm` and `sglang` are plug-ins, which `registration` installs through the engine's entry point. The engine renders the prompt, so
`rendered` creates their turns. `transformers`, `trl`, `mlx_lm` and `llama_cpp` provide functions and classes for your own programs.

Rules: a module imports its library only on use. An incompatible plug-in never keeps an engine from starting. Supported releases are listed
only as extras in the package's metadata.
"""
