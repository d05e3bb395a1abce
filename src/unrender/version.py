"""The version of this release, and the command that installs more of it."""

from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

__version__ = "0.3.0"


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, which came from a checkout, from a wheel or from an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 -- needed only after a mistake

    try:
        origin = json.loads(distribution("unrender").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # The package is imported from a checkout that isn't installed.
        origin = {"url": "file:.", "dir_info": {}}
    url = origin.get("url", "")
    if "dir_info" in origin:
        editable = "-e " * bool(origin["dir_info"].get("editable"))
        return f"pip install {editable}'{unquote(urlsplit(url).path)}[{extra}]'"
    return f"pip install 'unrender[{extra}]{' @ ' * bool(url)}{url}'"
