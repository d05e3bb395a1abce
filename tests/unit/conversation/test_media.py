"""Tests of images, audio and other message parts that aren't text."""

from __future__ import annotations

import pytest

from unrender import ChatTemplate, RequestError

LOOP = (
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'text' %}{{ p.text }}PARTS{% endif %}{% endfor %}{% endif %}</>{% endfor %}<assistant>"
)
BY_TYPE = LOOP.replace("PARTS", "{% elif p.type == 'image' %}[img]{% elif p.type == 'audio' %}[snd]")
BY_KEY = LOOP.replace("PARTS", "{% elif 'image' in p or 'image_url' in p %}[img]{% elif p.type == 'video' %}[vid]")
BY_URL = LOOP.replace("PARTS", "{% elif p.type == 'image_url' %}[{{ p.image_url.url }}]")
TEXT_ONLY = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}<assistant>"
TEXTS = LOOP.replace("PARTS", "")
OPENAI = {"type": "image_url", "image_url": {"url": "https://a/b.png"}}
PLAIN = {"type": "image", "image": "https://a/b.png"}
SOUND = {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}


def text(words):
    return {"type": "text", "text": words}


def asked(source, *parts):
    return ChatTemplate.from_string(source).prepare([{"role": "user", "content": list(parts)}])


@pytest.mark.parametrize("part", [OPENAI, PLAIN, {"type": "image"}], ids=["openai", "transformers", "bare"])
@pytest.mark.parametrize("source", [BY_TYPE, BY_KEY], ids=["by type", "by key"])
def test_an_image_is_shown_in_its_place(source, part):
    """In any form, an image is rendered as the template's placeholder in the same position, and is listed."""
    turn = asked(source, text("A"), part, text("B"))

    assert turn.prompt == "<user>A[img]B</><assistant>"
    assert [(media.kind, media.part, media.message) for media in turn.media] == [("image", part, 0)]


@pytest.mark.parametrize("part", [OPENAI, PLAIN], ids=["openai", "transformers"])
def test_an_address_is_passed_on(part):
    """A template that renders the URL gets it in the field that it reads."""
    assert asked(BY_URL, text("A"), part).prompt == "<user>A[https://a/b.png]</><assistant>"


def test_media_are_listed_in_the_order_of_their_placeholders():
    """Media are listed in the order of their placeholders over all messages, as processors expect."""
    user = {"role": "user", "content": [PLAIN, text("A"), SOUND]}
    turn = ChatTemplate.from_string(BY_TYPE).prepare([user, {"role": "assistant", "content": "B"}, user])

    assert turn.prompt.count("[img]A[snd]") == 2
    assert [(media.kind, media.message) for media in turn.media] == [
        ("image", 0),
        ("audio", 0),
        ("image", 2),
        ("audio", 2),
    ]


@pytest.mark.parametrize("source", [TEXT_ONLY, TEXTS], ids=["writes text", "reads text parts"])
def test_what_cannot_be_shown_is_an_error(source):
    """An unsupported part is an error that names the message and the part, and is never rendered as a Python object."""
    with pytest.raises(
        RequestError, match=r"messages\[0\]\.content\[1\]: the template doesn't support image parts, found 'image_url'"
    ):
        asked(source, text("A"), OPENAI)
    with pytest.raises(RequestError, match=r"messages\[0\]\.content\[0\]: the template doesn't support file parts"):
        asked(source, {"type": "file", "file": {"file_id": "f"}})


def test_text_is_no_media():
    """Text parts aren't media."""
    turn = asked(TEXT_ONLY, text("A"), text("B"))

    assert (turn.prompt, turn.media) == ("<user>AB</><assistant>", ())


def test_nothing_of_the_callers_is_changed():
    """The caller's conversation isn't modified."""
    conversation = [{"role": "user", "content": [text("A"), dict(OPENAI)]}]

    ChatTemplate.from_string(BY_TYPE).prepare(conversation)

    assert conversation == [{"role": "user", "content": [text("A"), OPENAI]}]
