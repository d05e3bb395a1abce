"""A gateway in this process, for tests: scripted engines behind it and the vendors' clients in front."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import letters
import openai
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tables import CORPUS, case_rows

from unrender import ChatTemplate
from unrender.answer.encode import encode_answer
from unrender.gateway import app
from unrender.gateway.answers.model import Model
from unrender.gateway.answers.turns import ModelSettings, TurnFactory
from unrender.gateway.backends import Backend, EngineCapabilities, EngineError, Job, OutputPiece, Sampler
from unrender.gateway.config import sampler_template
from unrender.gateway.gateway import GatewayLimits, Keys

TEMPLATES = Path(__file__).parent / "templates"
TOOL = letters.WEATHER
WEATHER: Any = TOOL["function"]
HELLO = [{"role": "user", "content": "Hello"}]
SHOWING = ChatTemplate.from_file(Path(__file__).with_name("unit") / "gateway" / "showing.jinja")
"""A template that renders images and sounds."""
RED = "data:image/png;base64,cmVk"
"""Minimal data of an image; nothing decodes it."""
_STRICT: Any = {"api_key": "key", "max_retries": 0, "_strict_response_validation": True}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


Said = str | OutputPiece | EngineError | float


class Told:
    """An engine that returns these pieces or raises the errors among them. A function may choose them for each job."""

    def __init__(
        self,
        said: str | Iterable[Said] | Callable[[Job], Iterable[Said]],
        *,
        capabilities: EngineCapabilities | None = None,
    ) -> None:
        self.said = [said] if isinstance(said, str) else said
        self.capabilities = capabilities or EngineCapabilities(seed=False)
        self.jobs: list[Job] = []
        self.asked = asyncio.Event()
        self.closed = 0
        self.counting = True
        self.texts: list[str] = []
        """Generated text of each job."""

    async def generate(self, job: Job) -> AsyncGenerator[OutputPiece, None]:
        """Yield the pieces. A number is a pause in seconds."""
        place = len(self.jobs)
        self.jobs.append(job)
        self.texts.append("")
        self.asked.set()
        try:
            for item in self.said(job) if callable(self.said) else self.said:
                if isinstance(item, EngineError):
                    raise item
                if isinstance(item, float):
                    await asyncio.sleep(item)
                else:
                    piece = OutputPiece(item) if isinstance(item, str) else item
                    self.texts[place] += piece.text
                    yield piece
        finally:
            self.closed += 1

    async def count(self, text: str) -> int | None:
        """Count words, or fail."""
        if not self.counting:
            raise EngineError("the engine cannot be reached", transient=True)
        return len(text.split())

    async def ready(self) -> str | None:
        """Report readiness."""
        return None

    async def close(self) -> None:
        """Do nothing, since a fake has no resources to release."""


def template(name: str = "") -> ChatTemplate:
    """Return a test template, or the sampler's template."""
    return ChatTemplate.from_file(TEMPLATES / f"{name}.jinja") if name else sampler_template()


def served(
    engine: Backend | None = None, chat: str | ChatTemplate = "", *, names: Sequence[str] = ("m",), **settings: Any
) -> Starlette:
    """Return a gateway with a model for each name and this engine, by default the sampler.

    Settings are for the gateway or the model.
    """
    loaded = template(chat) if isinstance(chat, str) else chat
    own = ModelSettings(**{name: settings.pop(name) for name in ModelSettings.model_fields.keys() & settings.keys()})
    backend, aliases = engine or Sampler(), settings.pop("aliases", ())
    factories = {name: TurnFactory(template=loaded, settings=own) for name in names}
    models = [Model(name=name, turns=made, backend=backend, aliases=aliases) for name, made in factories.items()]
    return app(models, **settings)


def written(name: str, calls: Sequence[tuple[str, Any, str]]) -> str:
    """Return a template's text for an answer with these calls, each a name, its arguments and an id."""
    return encode_answer(template(name).prepare(HELLO, tools=[TOOL]).format, calls=calls)


def browser(application: Any) -> httpx2.AsyncClient:
    """Return a plain HTTP client of a gateway in this process, for tests with concurrent requests."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=application), base_url="http://gateway")


def asked(application: Any, method: str, path: str, **how: Any) -> httpx2.Response:
    """Send one request to an application in this process, and return the response."""
    return TestClient(application, base_url="http://gateway").request(method, path, **how)


def posted(application: Any, path: str, **how: Any) -> httpx2.Response:
    """Send one request with a body to a gateway in this process, and return the response."""
    return asked(application, "POST", path, **how)


def openai_client(application: Any) -> openai.AsyncOpenAI:
    """Return OpenAI's client with strict validation, for packages that use it concurrently."""
    return openai.AsyncOpenAI(base_url="http://gateway/v1", http_client=browser(application), **_STRICT)


def openai_of(application: Any) -> Any:
    """Return OpenAI's client with strict validation."""
    http = TestClient(application, base_url="http://gateway")
    return openai.OpenAI(base_url="http://gateway/v1", http_client=http, **_STRICT)


def anthropic_of(application: Any) -> Any:
    """Return Anthropic's client with strict validation."""
    import anthropic  # noqa: PLC0415 -- importing its thousand modules takes seconds, and most users of this module don't need it

    http = TestClient(application, base_url="http://gateway")
    return anthropic.Anthropic(base_url="http://gateway", http_client=http, **_STRICT)


def counts(application: Any, name: str, label: str) -> Mapping[str, float]:
    """Return the values of a counter by one of its labels, without zeros."""
    found = Counter[str]()
    for family in text_string_to_metric_families(application.state.gateway.metrics.text().decode()):
        for sample in family.samples if family.name == f"unrender_{name}" else ():
            found[sample.labels[label]] += sample.value if sample.name.endswith("_total") else 0  # type: ignore[assignment]
    return +found


def corpus(name: str) -> list[Any]:
    """Return the rows of a file in `corpus/gateway`."""
    return case_rows(CORPUS / "gateway" / f"{name}.jsonl")


def gateway_settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a row's gateway: `settings`, `limits`, and `keys` with the names of their models."""
    found = dict(row.get("settings", {}))
    if "limits" in row:
        found["limits"] = GatewayLimits(**row["limits"])
    if "keys" in row:
        found["keys"] = Keys(models={key: frozenset(names) for key, names in row["keys"].items()})
    return found


def chunked(text: str, size: int) -> Iterable[str]:
    """Return a text in pieces of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]
