"""Leave out test modules whose packages aren't installed."""

from __future__ import annotations

from engines import installed

_GATEWAY = ("aiohttp", "openai", "anthropic")
_NEEDED = {"test_in_process.py": ("xllamacpp", *_GATEWAY), "test_peers.py": _GATEWAY}
collect_ignore = [name for name, needed in _NEEDED.items() if not all(map(installed, needed))]
