"""Tests of reading settings: models, limits and keys."""

from __future__ import annotations

import re
import tomllib

import pytest
from cases import beside
from serving import TEMPLATES, corpus, template

from unrender import ChatTemplate
from unrender.gateway.backends import Sampler
from unrender.gateway.backends.llama_server import start
from unrender.gateway.config import read, read_file
from unrender.gateway.failure import Failure


def test_file_is_read(tmp_path, monkeypatch):
    """A file defines models, limits and keys. Secrets come from the environment."""
    monkeypatch.setenv("TEST_GATEWAY_KEY", "secret")
    path = tmp_path / "gateway.toml"
    path.write_text(beside(__file__, "gateway.toml").replace("TEMPLATES", str(TEMPLATES)))

    config = read_file(str(path))

    assert (config.port, config.host, config.shutdown_timeout) == (9000, "127.0.0.1", 5.0)
    assert (config.limits.max_streams, config.limits.keepalive_interval, config.limits.max_body_bytes) == (
        7,
        3.0,
        32_000_000,
    )
    assert config.cors == ("http://a",)
    assert config.keys.models == {"secret": frozenset({"a"})}
    first, second = config.models
    assert (first.name, first.aliases, first.settings.reasoning_field) == ("a", ("b", "c"), "reasoning")
    assert first.backend.capabilities.dialect == "structural_tag"
    assert first.settings.constrain == "required"
    assert first.settings.variables == {"enable_thinking": False}
    assert isinstance(second.backend, Sampler)


@pytest.mark.parametrize("row", corpus("settings"), ids=lambda row: row["said"])
def test_mistake_is_named(row):
    """Errors name the place of the mistake."""
    with pytest.raises(Failure) as caught:
        read(row["settings"])

    assert row["said"] in caught.value.message


def test_file_that_is_none_is_named(tmp_path):
    """A missing or invalid TOML file is an error that names it."""
    (tmp_path / "bad.toml").write_text("= 1")

    for name in ("missing.toml", "bad.toml"):
        with pytest.raises(Failure, match=name):
            read_file(str(tmp_path / name))


def test_every_engine_of_the_page_is_read(monkeypatch):
    """Every file on the page of settings is valid, and each engine has one."""
    text = (TEMPLATES.parent.parent / "docs" / "howto" / "serve-settings.md").read_text(encoding="utf-8")
    files = [tomllib.loads(block) for block in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    monkeypatch.setenv("ENGINE_KEY", "secret")
    own = template()
    for name in ("from_pretrained", "from_file"):
        monkeypatch.setattr(ChatTemplate, name, lambda _: own)

    right = [file for file in files if file["models"][0].get("url") != "localhost:8001"]
    assert len(files) == len(right) + 1
    for file in right:
        read(file, check=True)
    with pytest.raises(Failure) as caught:
        read({"models": [{"backend": "none"}]})
    assert all(repr(kind) in caught.value.message for kind in {file["models"][0]["backend"] for file in right})
    assert caught.value.message.count("'") == 2 * (len({file["models"][0]["backend"] for file in right}) + 1)


def test_check_of_settings_needs_no_engine(monkeypatch):
    """A check reads everything, but starts no engine, so an unreachable engine or missing weights aren't errors."""
    monkeypatch.setenv("TEST_GATEWAY_KEY", "secret")
    remote = {"name": "a", "backend": "llama-server", "url": "http://127.0.0.1:9", "key_env": "TEST_GATEWAY_KEY"}
    here = {"name": "b", "backend": "gguf", "path": "nowhere", "template": f"{TEMPLATES}/json-tags.jinja"}

    assert [model.name for model in read({"models": [remote, here]}, check=True).models] == ["a", "b"]

    for wrong in (remote | {"key_env": "NOT_SET_ANYWHERE"}, here | {"template": "nowhere.jinja"}):
        with pytest.raises(Failure, match=r"models\[0\]"):
            read({"models": [wrong]}, check=True)


def test_file_that_is_no_model_is_not_loaded(tmp_path, monkeypatch):
    """A template in place of weights is an error of one sentence, instead of ten lines from llama.cpp."""
    monkeypatch.setattr("unrender.gateway.backends.llama_server.llama_cpp", object)
    (tmp_path / "t.jinja").write_text("{{ messages }}")

    with pytest.raises(Failure, match="expected a GGUF file.*a template is `template` or --model"):
        start(str(tmp_path / "t.jinja"))
