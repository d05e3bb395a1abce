"""`unrender playground`: serves a page on this machine that shows templates, formats, outputs and grammars."""

from __future__ import annotations

from pathlib import Path

import click

from unrender.cli.inputs import BadInput, load
from unrender.cli.terminal import print_line, remark

PYODIDE = "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/"
"""Where the page of a static folder takes Pyodide from, if nothing else is said."""


@click.command(short_help="See a template's format in a browser.")
@click.argument("templates", metavar="[TEMPLATE]...", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65535), default=8800, show_default=True, help="The port to listen at.")
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@click.option(
    "--static", metavar="DIR", type=click.Path(), help="Write the page into a folder for any web server, and end."
)
@click.option(
    "--pyodide",
    metavar="URL|DIR",
    default=PYODIDE,
    show_default=True,
    help="Where the page of --static takes Pyodide from; a folder is copied.",
)
def playground_command(
    templates: tuple[str, ...], *, port: int, opened: bool, static: str | None, pyodide: str
) -> None:
    """Show on a page how a template's answers are written, and how an output is read as it streams in.

    Each TEMPLATE can be chosen on the page, and others can be pasted there. The page is served at 127.0.0.1 only and
    needs no network. With --static, Python runs in the browser instead, on Pyodide.
    """
    if static is not None:
        _write(Path(static), pyodide)
        return
    try:
        from unrender.playground.server import app, bound, serve  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is missing: pip install 'unrender[gateway]'") from error
    application = app({name: load(name) for name in templates})
    try:
        listener = bound(port)
    except OSError as error:
        raise BadInput(f"port {port}: {error.strerror}") from error
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    remark(f"the playground is at {address}")
    if opened:
        click.launch(address)
    serve(application, listener)


def _write(folder: Path, pyodide: str) -> None:
    from unrender.playground.static import StaticError, write  # noqa: PLC0415 - loaded when it is used

    try:
        files = write(folder, pyodide=pyodide)
    except StaticError as error:
        raise BadInput(str(error)) from error
    print_line(f"{len(files)} files are in {folder}; serve them with any web server")
