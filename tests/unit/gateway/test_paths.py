"""Tests of the paths that don't generate text."""

from __future__ import annotations

from serving import HELLO, Told, asked, served, template


def fetched(path, body=None):
    return asked(served(Told("Hi")), "GET" if body is None else "POST", path, json=body)


def test_models_are_listed_for_every_client():
    """`/v1/models` lists the models under `data` and `models`, and a model can be fetched by name."""
    listed, one = fetched("/v1/models").json(), fetched("/v1/models/m").json()

    assert listed["data"] == listed["models"] == [one]
    assert one["id"] == "m"
    assert fetched("/v1/models/other").status_code == 404


def test_format_is_shown():
    """`/v1/format` returns the derived format."""
    assert fetched("/v1/format").json()["tools"]["call_start"] == template().format.tools.call_start


def test_prompt_is_rendered():
    """`/v1/render` returns the prompt that the engine would get."""
    answer = fetched("/v1/render", {"messages": HELLO}).json()

    assert answer["prompt"] == template().prepare(HELLO).prompt
    assert "<|end|>" in answer["stop"]


def test_unknown_paths_are_refused_in_the_same_shape():
    """An unknown path or a wrong method is an error in the usual form."""
    assert fetched("/v1/nothing").json()["error"]["message"] == "GET /v1/nothing: Not Found"
    assert fetched("/v1/chat/completions").status_code == 405


def test_own_template_passes():
    """The gateway's own template supports reasoning and calls."""
    format = template().format

    assert (format.reasoning.start, format.tools.mode.value) == ("<think>\n", "json_native")
    assert template().capabilities.supports_tools
