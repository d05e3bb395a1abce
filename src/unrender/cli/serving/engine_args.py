"""`unrender engine-args`: prints the commands with which an engine serves a model, with proof and reasons.

vLLM and SGLang run the plug-in, and the gateway goes in front of every engine: both read with the whole format. Some engines
also read an exported response template by themselves, which can say less.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from unrender import ChatTemplate, ExportError, Target
from unrender.cli.inputs import json_option, load, template_argument, template_name_option
from unrender.cli.output import print_heading, print_rows
from unrender.cli.terminal import print_document, print_json
from unrender.cli.verify import finding_row
from unrender.format import ReasoningMode, ToolMode
from unrender.integrations.rendered import TEMPLATE
from unrender.verify import verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to serve a model."""

    title: str
    lines: tuple[str, ...]
    """Commands of a shell, or lines of Python."""
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model, as the user names it, and what its template is."""

    model: str
    template: ChatTemplate

    @property
    def quoted(self) -> str:
        """The model, quoted for a shell."""
        return shlex.quote(self.model)

    @property
    def served(self) -> str:
        """The model that the engine loads, quoted for a shell; MODEL when the user named a template's file."""
        return "MODEL" if Path(self.model).is_file() else self.quoted

    @property
    def folder(self) -> str:
        """The model's folder, quoted for a shell; DIR when the user did not name a folder."""
        return self.quoted if Path(self.model).is_dir() else "DIR"

    def export(self, target: Target) -> tuple[tuple[str, ...], str]:
        """Return what a response template would leave out, and the reason why there can be none, or ""."""
        try:
            return tuple(omission.what for omission in self.template.response_template(target=target).omissions), ""
        except ExportError as error:
            return (), str(error)


@click.command(short_help="Print how to start an engine for a template.")
@template_argument
@click.option(
    "--engine", required=True, type=click.Choice(["vllm", "sglang", "llama-server", "transformers", "ollama"])
)
@template_name_option
@json_option
def engine_args_command(template: str, *, engine: str, template_name: str | None, as_json: bool) -> None:
    """Print the exact commands, or the code, with which an engine serves this model, and the reasons for them.

    The plug-in and the gateway read answers with the whole format. An engine that reads response templates needs
    neither, if the format can be written as one; what that loses is listed. The proof is that of `unrender verify`.
    """
    loaded = load(template, name=template_name)
    ways = tuple(_ENGINES[engine](Subject(model=template, template=loaded)))
    report = verify(loaded)
    if as_json:
        print_json({"engine": engine, "ways": [asdict(way) for way in ways], "proof": report.to_dict()})
        return
    for way in ways:
        print_heading(way.title)
        print_document("\n".join(way.lines))
        print_rows([("-", why) for why in way.why])
    print_heading("Proof", "answers that the template wrote, parsed back")
    print_rows([finding_row(finding) for finding in report.findings])


def _gateway(subject: Subject, engine: str, start: str, url: str, why: Sequence[str], more: str = "") -> Way:
    serve = f"unrender serve {url} --backend {engine} --model {subject.quoted}{more} --port 8000"
    stops = ", ".join(repr(text) for text in subject.template.prepare(_QUESTION).stop) or "none"
    told = (*why, f"the gateway sends what ends a turn with each request: {stops}", *_preserved(subject))
    return Way(title="With the gateway", lines=(start, serve), why=told)


_QUESTION = [{"role": "user", "content": "Hello"}]


def _preserved(subject: Subject) -> Iterator[str]:
    tokens = subject.template.format.preserved_tokens
    if tokens:
        yield f"it keeps the special tokens that answers are read by: {', '.join(tokens)}"


def _inside(subject: Subject, engine: str, start: str) -> Way:
    """Return how an engine runs our plug-in."""
    why = [
        "the plug-in is found when unrender is installed beside the engine; it reads and constrains as the gateway does"
    ]
    if Path(subject.model).is_file():
        start = f"{TEMPLATE}={subject.quoted} {start}"
        why.append(f"engines do not tell plug-ins of a template outside the checkpoint, hence {TEMPLATE}")
    return Way(title=f"Inside {engine}", lines=("pip install unrender", start), why=tuple(why))


def _own(subject: Subject, engine: str, start: str, why: str, target: Target = Target.VLLM) -> Way:
    """Return how an engine reads answers by itself, or why it cannot."""
    title = f"By {engine} itself"
    omissions, refused = subject.export(target)
    if refused:
        return Way(title=title, lines=("# not possible for this format",), why=(refused,))
    write = (
        f"unrender format export {subject.quoted} --field-names {target} --write {subject.folder}/tokenizer_config.json"
    )
    return Way(title=title, lines=(write, start), why=(why, *(f"not expressed: {what}" for what in omissions)))


def _vllm(subject: Subject) -> Iterator[Way]:
    flags = "--enable-auto-tool-choice --tool-call-parser unrender --reasoning-parser unrender"
    yield _inside(subject, "vLLM", f"vllm serve {subject.served} {flags}")
    yield _gateway(
        subject,
        "vllm",
        f"vllm serve {subject.served} --port 8001",
        "http://127.0.0.1:8001",
        ["without --reasoning-parser: with it, vLLM never enforces a grammar on raw completions (vllm#57726)"],
    )
    flags = ""
    if subject.template.format.tools.mode is not ToolMode.NONE:
        flags += " --enable-auto-tool-choice --tool-call-parser hf"
    if subject.template.format.reasoning.mode is not ReasoningMode.NONE:
        flags += " --reasoning-parser hf"
    why = "`hf` reads the checkpoint's response template; it refuses strict tools, required and named calls"
    yield _own(subject, "vLLM", f"vllm serve {subject.folder}{flags}", why)


def _sglang(subject: Subject) -> Iterator[Way]:
    start = "python -m sglang.launch_server --model-path"
    flags = "--tool-call-parser unrender --reasoning-parser unrender"
    yield _inside(subject, "SGLang", f"{start} {subject.served} {flags}")
    yield _gateway(subject, "sglang", f"{start} {subject.served} --port 8001", "http://127.0.0.1:8001", [])
    why = "`auto` takes the response template only where no rule of SGLang's knows the chat template: see its log"
    yield _own(subject, "SGLang", f"{start} {subject.folder} --tool-call-parser auto --reasoning-parser auto", why)


def _llama_server(subject: Subject) -> Iterator[Way]:
    start = "llama-server -m MODEL.gguf --port 8001"
    yield _gateway(
        subject, "llama-server", start, "http://127.0.0.1:8001", ["without --model, the GGUF's own template is used"]
    )


def _transformers(subject: Subject) -> Iterator[Way]:
    lines = (
        "from transformers import AutoModelForCausalLM, AutoTokenizer",
        "from unrender.integrations.transformers import chat_template, read_ids",
        f"tokenizer = AutoTokenizer.from_pretrained({subject.model!r})",
        f"model = AutoModelForCausalLM.from_pretrained({subject.model!r})",
        "turn = chat_template(tokenizer).prepare(messages, tools=tools)",
        'inputs = tokenizer(turn.prompt, return_tensors="pt", add_special_tokens=False)',
        "output = model.generate(**inputs, max_new_tokens=512)",
        'message = read_ids(turn, tokenizer, output[0][inputs["input_ids"].shape[1]:])',
    )
    yield Way(title="In Python", lines=lines, why=("the prompt is whole: special tokens must not be added again",))
    why = "`transformers serve` reads the checkpoint's response template; it takes no tool_choice and no grammars"
    yield _own(subject, "transformers", "transformers serve", why, Target.TRANSFORMERS)


def _ollama(subject: Subject) -> Iterator[Way]:
    why = ["Ollama takes no grammars: a required call is asked for, and asked for again where it is missing"]
    yield _gateway(subject, "ollama", "ollama serve", "http://127.0.0.1:11434", why, " --engine-model NAME")


_ENGINES: Mapping[str, Callable[[Subject], Iterator[Way]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "llama-server": _llama_server,
    "transformers": _transformers,
    "ollama": _ollama,
}
