"""The entry points, as engines of any release call them: found by the metadata, in a process of their own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from unrender.integrations import sglang, vllm
from unrender.integrations.registration import above

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

VLLM = {
    "parser/response_template.py": """
class ResponseTemplateReasoningParser:
    reasoning_start_str = reasoning_end_str = None
    @classmethod
    def unified_parser_cls(cls): ...
    def __init__(self, tokenizer, *args, **kwargs): ...
    def is_reasoning_end(self, input_ids): ...
    def is_reasoning_end_streaming(self, input_ids, delta_ids): ...
class ResponseTemplateToolParser:
    @classmethod
    def unified_parser_cls(cls): ...
class ResponseTemplateParser:
    always_adjust_request = True
    def __init__(self, tokenizer, tools=None, *, response_template=None, enable_auto_tools=None, **kwargs): ...
    def set_prompt_token_ids(self, prompt_token_ids): ...
    def adjust_request(self, request): ...
    def is_reasoning_end(self, input_ids): ...
    def count_reasoning_tokens(self, token_ids): ...
    def parse(self, model_output, request, enable_auto_tools=False, model_output_token_ids=()): ...
    def parse_delta(self, delta_text, delta_token_ids, request, prompt_token_ids=None, *, finished): ...
def validate_tokenizer_response_template(tokenizer, *, reasoning_parser, tool_parser):
    raise TypeError("no response_template")
def _as_tool_dicts(tools): ...
""",
    "parser/abstract_parser.py": "class Parser: ...",
    "parser/utils.py": "def count_history_tool_calls(request): ...",
    "tool_parsers/__init__.py": """
class ToolParserManager:
    known = {}
    @classmethod
    def register_module(cls, name=None, force=True, module=None): cls.known[name] = module
""",
    "reasoning/__init__.py": """
class ReasoningParser: ...
class ReasoningParserManager:
    known = {}
    @classmethod
    def register_module(cls, name=None, force=True, module=None): cls.known[name] = module
""",
    "exceptions.py": "class VLLMValidationError(ValueError): ...",
    "sampling_params.py": "class StructuredOutputsParams: ...",
    "entrypoints/generate/base/protocol.py": "DeltaFunctionCall = DeltaMessage = DeltaToolCall = FunctionCall = object",
    "envs.py": "VLLM_ENFORCE_STRICT_TOOL_CALLING = False",
}
"""What vLLM 0.33 is to the plug-in: names and signatures."""

SGLANG = {
    "srt/parser/response_template.py": """
class ResponseTemplateReasoningDetector:
    def __init__(self, stream_reasoning=True, tokenizer=None, response_template=None, prefix="", **more): ...
    reasoning_default = "explicit_enable_thinking"
    def starts_message(self, prefix): ...
    def answer_opener(self, prefix): ...
    def json_output_started(self, text): ...
    def json_answer_structural_tag(self, json_schema, *, tools, parallel_tool_calls=True, message_start=False): ...
    def detect_and_parse(self, text): ...
    def parse_streaming_increment(self, new_text): ...
    def finish(self): ...
class ResponseTemplateToolDetector:
    def __init__(self, tokenizer=None, response_template=None, prefix="", tools=None, constrained=False): ...
    def has_tool_call(self, text): ...
    def detect_and_parse(self, text, tools): ...
    def parse_streaming_increment(self, new_text, tools): ...
    def finish(self, tools): ...
    def supports_structural_tag(self): ...
    def open_call_closer(self, text): ...
    def get_structural_tag(
        self, tools=None, tool_choice="auto", thinking_mode=False, parallel_tool_calls=True, message_start=False
    ): ...
    def validate_structure_constraint_request(
        self, tool_choice, parallel_tool_calls, strict_requested, *, tools, thinking_mode=False
    ): ...
""",
    "srt/parser/reasoning_parser.py": "class ReasoningParser:\n    DetectorMap = {}",
    "srt/function_call/function_call_parser.py": "class FunctionCallParser:\n    ToolCallParserEnum = {}",
    "srt/function_call/base_format_detector.py": "class BaseFormatDetector: ...",
    "srt/function_call/core_types.py": "StreamingParseResult = ToolCallItem = object",
}
"""What SGLang 0.5.23 is to the plug-in."""

ENGINES = {"vllm": ("vllm.general_plugins", "0.33.0", VLLM), "sglang": ("sglang.srt.plugins", "0.5.23", SGLANG)}
KNOWN = {
    "vllm": "from vllm.tool_parsers import ToolParserManager as a; from vllm.reasoning import ReasoningParserManager as b\n"
    "print(' '.join(['known:', *{**a.known, **getattr(b, 'known', {})}]))",
    "sglang": "from sglang.srt.function_call.function_call_parser import FunctionCallParser as a\n"
    "from sglang.srt.parser.reasoning_parser import ReasoningParser as b\n"
    "print(' '.join(['known:', *{**a.ToolCallParserEnum, **getattr(b, 'DetectorMap', {})}]))",
}


@pytest.fixture
def site(tmp_path):
    """Return a folder of packages that holds unrender's metadata, as its wheel would have them."""
    groups = PROJECT["entry-points"].items()
    points = "".join(f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in named.items()) for group, named in groups)
    needs = [
        f"Requires-Dist: {need}; extra == '{extra}'"
        for extra, all_needs in PROJECT["optional-dependencies"].items()
        for need in all_needs
    ]
    install(tmp_path, "unrender", "1.0", needs, {"entry_points.txt": points})
    return tmp_path


def install(site: Path, name: str, version: str, more: list[str], files: Mapping[str, str]) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    head = ["Metadata-Version: 2.3", f"Name: {name}", f"Version: {version}", *more]
    for file, text in {"METADATA": "\n".join(head) + "\n", **files}.items():
        (folder / file).write_text(text, encoding="utf-8")


def engine(site: Path, name: str, version: str, modules: Mapping[str, str]) -> None:
    """Install a package that has these modules and nothing in them but names and signatures."""
    install(site, name, version, [], {})
    for path, text in modules.items():
        file = site / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for folder in [site / name, *(path for path in (site / name).rglob("*") if path.is_dir())]:
        (folder / "__init__.py").touch()


def started(site: Path, group: str, code: str = "") -> subprocess.CompletedProcess[str]:
    """Run what an engine does at its start, and then `code`."""
    lines = (
        "import importlib.metadata, logging, sys",
        "logging.basicConfig(format='%(levelname)s %(name)s: %(message)s', level='INFO')",
        f"(point,) = [p for p in importlib.metadata.entry_points(group={group!r}) if p.name == 'unrender']",
        "for _ in range(2): point.load()()",
        code,
        "print('the engine runs')",
    )
    path = os.pathsep.join((str(site), str(ROOT / "src")))
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        env=env,
        cwd=site,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ENGINES)
def test_registers_in_a_supported_release(site, name):
    """In a release of the known shape both parsers are there, and nothing is said."""
    group, version, modules = ENGINES[name]
    engine(site, name, version, modules)

    run = started(site, group, KNOWN[name])

    assert run.stdout.splitlines() == ["known: unrender", "the engine runs"]
    assert run.stderr == ""


TEMPLATES, DETECTORS = "parser/response_template.py", "srt/parser/response_template.py"
SHAPES: dict[tuple[str, str, str], dict[str, Any]] = {
    # As in vLLM 0.1 to 0.10: parsers elsewhere, none of whole answers.
    ("vllm", "0.6.3", "ModuleNotFoundError"): {
        "entrypoints/openai/tool_parsers/__init__.py": VLLM["tool_parsers/__init__.py"]
    },
    # As in 0.31: whole answers, and none that a response template describes.
    ("vllm", "0.31.0", "ModuleNotFoundError: No module named 'vllm.parser.response_template'"): {
        **VLLM,
        TEMPLATES: None,
    },
    # As in 0.32: its parsers choose no class, and the check is told otherwise.
    ("vllm", "0.32.0", "unified_parser_cls"): {
        **VLLM,
        TEMPLATES: VLLM[TEMPLATES].replace("unified_parser_cls", "unified_class"),
    },
    ("vllm", "0.32.1", "validate_tokenizer_response_template"): {
        **VLLM,
        TEMPLATES: VLLM[TEMPLATES].replace("*, reasoning_parser, tool_parser", "*, reasoning, tools"),
    },
    # What a later release may do.
    ("vllm", "0.40.0", "AttributeError"): {**VLLM, "parser/utils.py": "def count_calls_so_far(request): ..."},
    ("vllm", "0.41.0", "parse_delta: expected no parameter 'turn'"): {
        **VLLM,
        TEMPLATES: VLLM[TEMPLATES].replace("*, finished", "*, finished, turn=None"),
    },
    ("vllm", "0.42.0", "adjust_request: expected the parameters"): {
        **VLLM,
        TEMPLATES: VLLM[TEMPLATES].replace("adjust_request(self, request)", "adjust_request(self, context, request)"),
    },
    ("vllm", "0.43.0", "has no 'parse'"): {
        **VLLM,
        TEMPLATES: VLLM[TEMPLATES].replace("def parse(", "def parse_whole("),
    },
    ("vllm", "0.44.0", "TypeError"): {
        **VLLM,
        "reasoning/__init__.py": VLLM["reasoning/__init__.py"].replace("name=None, force=True, module=None", "parser"),
    },
    ("vllm", "0.45.0", "RuntimeError: no GPU"): {**VLLM, "sampling_params.py": "raise RuntimeError('no GPU')"},
    ("vllm", "0.46.0", "SyntaxError"): {**VLLM, "exceptions.py": "def"},
    # As in SGLang 0.5.22 and before.
    ("sglang", "0.5.22", "ModuleNotFoundError: No module named 'sglang.srt.parser.response_template'"): {
        **SGLANG,
        DETECTORS: None,
    },
    ("sglang", "0.4.0", "ModuleNotFoundError"): {"srt/openai_api/protocol.py": ""},
    ("sglang", "0.6.0", "open_call_closer"): {**SGLANG, DETECTORS: SGLANG[DETECTORS].replace("open_call_", "call_")},
    ("sglang", "0.7.0", "AttributeError"): {
        **SGLANG,
        "srt/parser/reasoning_parser.py": "class ReasoningParser:\n    Detectors = {}",
    },
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "-".join(shape[:2]))
def test_another_release_starts_as_without_unrender(site, shape):
    """Whatever a release lacks, it starts, nothing is registered, and one line names both releases and the reason."""
    name, version, why = shape
    group, _, _ = ENGINES[name]
    modules = {path: text for path, text in SHAPES[shape].items() if text is not None}
    engine(site, name, version, modules)
    (site / "both.py").write_text(
        f"try:\n    {KNOWN[name].replace(chr(10), chr(10) + '    ')}\nexcept ImportError: pass\n"
    )

    run = started(site, group, "import both")

    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, "the engine runs")
    assert set(run.stdout.splitlines()[:-1]) <= {"known:"}
    said = set(run.stderr.splitlines())
    assert len(said) == 1
    (line,) = said
    assert (
        f"unrender does not plug into {name} {version}: {PROJECT['optional-dependencies'][name][0]} is supported"
        in line
    )
    assert why in line


def test_says_which_releases_are_supported():
    """The range is that of the extra, wherever it is told."""
    for name, (_, version, _) in ENGINES.items():
        (need,) = PROJECT["optional-dependencies"][name]
        assert need.startswith(f"{name}>={version.removesuffix('.0')},<")


@pytest.mark.parametrize("module", [vllm, sglang])
def test_what_is_used_of_an_engine_is_asked_for_first(module):
    """Each name that a request takes from the engine is among those that are looked for at the start."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    engine_name = module.__name__.rpartition(".")[2]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Call(func=ast.Attribute(attr="import_module"), args=[asked]), attr=name):
                path = vars(module)[asked.id] if isinstance(asked, ast.Name) else ast.literal_eval(asked)
                assert not path.startswith(engine_name) or name in module._USED[path]


def test_a_plug_in_takes_what_the_engine_gives():
    """A class fits where each of its methods can stand in for the engine's own."""

    class Ours:
        def read(self, text, *, end=False): ...

    class Theirs:
        def read(self, text, *, end): ...

    assert vars(above(Ours, Theirs, "Both", kept=1))["kept"] == 1
    for signature in (
        "self, text",
        "self",
        "self, words, *, end",
        "self, text, more, *, end",
        "self, text, *, end, more=1",
    ):
        other = type("Theirs", (), {"read": eval(f"lambda {signature}: None")})
        if signature == "self, text":
            above(Ours, other, "Both")
            continue
        with pytest.raises(TypeError, match="Theirs.read: expected"):
            above(Ours, other, "Both")


def test_harmony_is_refused_in_words_that_help(site):
    """Where vLLM has chosen its parser of Harmony, ours says what to do, before vLLM says what it requires."""
    engine(
        site, "vllm", "0.33.0", {**VLLM, "parser/harmony.py": "class HarmonyParser:\n    reasoning_parser_cls = None"}
    )
    code = (
        "from vllm.parser.harmony import HarmonyParser\nfrom vllm.tool_parsers import ToolParserManager\n"
        "HarmonyParser.tool_parser_cls = ToolParserManager.known['unrender']\n"
        "try:\n    HarmonyParser.tool_parser_cls(None)\nexcept ValueError as error: print(error)\n"
    )

    run = started(site, "vllm.general_plugins", code)

    assert "leave out --tool-call-parser unrender and --reasoning-parser unrender" in run.stdout


def test_the_pytest_plugin_needs_no_new_pytest():
    """It is imported by a pytest that has none of the names of releases 7 and 8, nor their style of wrappers."""
    code = (
        "import pytest\nfor name in ('Stash', 'StashKey'): delattr(pytest, name)\n"
        "old = lambda hookwrapper=False, tryfirst=False, trylast=False: lambda hook: hook\n"
        "pytest.hookimpl = old\nimport unrender.testing.plugin"
    )

    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=True)


@pytest.mark.parametrize("given", ["", "import sys\nsys.modules['jinja2'] = None"], ids=["whole", "without jinja2"])
def test_a_foreign_project_is_tested_as_without_unrender(site, given):
    """Pytest runs a project that has nothing to do with unrender, all warnings being errors."""
    (site / "early.py").write_text(given)
    (site / "suite").mkdir()
    (site / "suite" / "test_it.py").write_text(
        "import pytest\n@pytest.fixture\ndef chat(): return 1\ndef test_it(chat): assert chat == 1\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(ROOT / "src")))}

    command = [sys.executable, "-m", "pytest", "-W", "error", "-p", "early", "-p", "no:cacheprovider", "-q", "suite"]
    run = subprocess.run(command, env=env, cwd=site, capture_output=True, text=True, timeout=120, check=False)

    assert (run.returncode, run.stdout.splitlines()[-1].split(" in ")[0]) == (0, "1 passed")
