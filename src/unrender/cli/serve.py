"""`unrender serve`: a gateway with OpenAI's API in front of an engine."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import click

from unrender.chat_template import ChatTemplate
from unrender.cli.inputs import BadInput, load
from unrender.cli.terminal import remark

if TYPE_CHECKING:
    from unrender.gateway.models import Model

_SAMPLED = "no model: every answer is random, well-formed text drawn from the format's grammar"


@click.command("serve", short_help="Serve a model, or random answers, over HTTP.")
@click.option(
    "--model",
    "source",
    metavar="TEMPLATE",
    help="Whose chat template to use; without it, one that comes with unrender.",
)
@click.option("--name", help="The name that clients ask for; any other is answered as well.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="The port to listen at.")
@click.option(
    "--rate", default=50.0, show_default=True, type=click.FloatRange(0), help="Tokens a second; 0 for no limit."
)
@click.option(
    "--drain",
    default=30.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds to finish answers when told to end.",
)
def serve(source: str | None, name: str | None, host: str, port: int, rate: float, drain: float) -> None:
    """Answer OpenAI's Chat Completions over HTTP, until a signal ends it.

    There is no model behind it yet: answers are random, but well-formed, in the format of the template, so that clients,
    tools and load can be tried. At SIGTERM, answers that are on their way are finished first.
    """
    try:
        from unrender.gateway.routes import app  # noqa: PLC0415 - an extra
        from unrender.gateway.serve import server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise BadInput(f"{error.name} is missing: pip install 'unrender[gateway]'") from error
    model = _sampled(source, name, rate)
    remark(f"{model.name}: {_SAMPLED}")
    remark(f"listening at http://{host}:{port}/v1")
    server(app([model]), host=host, port=port, drain=drain).run()


def _sampled(source: str | None, name: str | None, rate: float) -> Model:
    from unrender.gateway.backends.sampler import Sampler  # noqa: PLC0415
    from unrender.gateway.models import Model  # noqa: PLC0415
    from unrender.gateway.turns import Turns  # noqa: PLC0415

    template = load(source) if source else ChatTemplate.from_string(own_template())
    return Model(name=name or "sampler", turns=Turns(template=template), backend=Sampler(rate=rate), aliases=("*",))


def own_template() -> str:
    """Return the source of the template that is used without a model."""
    return files("unrender.gateway").joinpath("sampler.jinja").read_text(encoding="utf-8")
