"""The same request works with every template: the prompt contains all of its text, or a note names what is missing."""

from __future__ import annotations

from typing import Any

import pytest
from answers import template_named, template_paths
from tables import table
from vendor import all_vendor_templates

from unrender import RequestError

each_template = pytest.mark.parametrize("name", all_vendor_templates() or template_paths())
T: Any = table("same_request")
USER = {"role": "user", "content": "Ask Q1"}
REQUESTS: dict[str, dict[str, Any]] = T["REQUESTS"]
REFUSED: dict[str, str] = T["REFUSED"]
"""Expected errors: images for templates that show none, and a malformed message for all."""
NAMED_ALONE = {"documents", "documents and tools", "thought, said and called"}
"""Requests that may lose texts if a warning names each. Few templates support documents, or reasoning and text before a call."""


def texts(content: Any) -> list[str]:
    """Return the texts of a message's content."""
    return [one["text"] for one in content if "text" in one] if isinstance(content, list) else [content or ""]


def unshown(name: str, label: str) -> str:
    """Return the error in a template's prompt for a request; "" if there is none."""
    request = {"messages": [USER], **REQUESTS[label]}
    try:
        turn = template_named(name).prepare(**request)
    except RequestError as error:
        refused = label in REFUSED and str(error).startswith(REFUSED[label])
        return "" if refused else str(error)
    except Exception as error:  # noqa: BLE001 -- which one is what the test is about
        return repr(error)
    said = {f"messages[{i}]": texts(message["content"]) for i, message in enumerate(request["messages"])}
    said |= {f"documents[{i}]": [document["text"]] for i, document in enumerate(request.get("documents") or ())}
    said |= {one["function"]["name"]: [one["function"]["name"]] for one in request.get("tools") or ()}
    lost = [place for place, parts in said.items() if not all(part in turn.prompt for part in parts)]
    noted = [place for place in lost if any(note.startswith(place.partition("[0]")[0]) for note in turn.warnings)]
    if request.get("tool_choice") == "none":
        lost = [place for place in lost if place != "look_up"]
    return "" if lost == noted and (not lost or label in NAMED_ALONE) else f"{lost} {turn.warnings}"


@pytest.mark.few(24)
@pytest.mark.filterwarnings("ignore::unrender.errors.TemplateWarning")
@each_template
def test_the_same_request_suits_every_template(name):
    """Almost fifty requests as applications send them work with every template."""
    assert {label: found for label in REQUESTS if (found := unshown(name, label))} == {}
