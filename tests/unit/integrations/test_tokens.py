"""Token ids into events, with a real byte-level tokenizer."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

from unrender import ChatTemplate, ContentText, ToolCallStarted
from unrender.integrations.tokens import TokenParser, special_ids_of
from unrender.limits import MAX_HELD

SOURCE = """{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}
{%- for call in m.tool_calls or [] -%}
<call>{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}</call>
{%- endfor -%}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
TOOLS = [{"name": "now", "parameters": {"type": "object", "properties": {}}}]
ANSWER = 'Grüße, 東京 😀! <call>{"name": "now", "arguments": {}}</call>'


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A tokenizer of single bytes: every character but ASCII's takes several ids."""
    alphabet = {letter: index for index, letter in enumerate(sorted(ByteLevel.alphabet()))}
    made = Tokenizer(BPE(vocab=alphabet, merges=[]))
    made.pre_tokenizer = ByteLevel(add_prefix_space=False)
    made.decoder = ByteLevelDecoder()
    made.add_special_tokens([AddedToken(text, special=True) for text in ("<call>", "</call>", "<|end|>")])
    return made


def parser(tokenizer: Tokenizer) -> TokenParser:
    template = ChatTemplate.from_string(SOURCE)
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=TOOLS)
    return TokenParser(turn.parser(), tokenizer)


def test_ids_give_what_the_text_gives(tokenizer):
    """One id at a time, the message is that of the whole text; half characters wait."""
    reader = parser(tokenizer)

    events = [event for token in tokenizer.encode(ANSWER).ids for event in reader.feed(token)]
    events += reader.finish()

    assert reader.message.content.strip() == "Grüße, 東京 😀!"
    assert [call.name for call in reader.message.tool_calls] == ["now"]
    assert not any("\ufffd" in event.text for event in events if isinstance(event, ContentText))


def test_a_spelled_out_special_token_is_a_quotation(tokenizer):
    """Text that only spells a marker begins no call; the marker's own id does."""
    spelled = [tokenizer.token_to_id(letter) for letter in "<call>"]
    rest = tokenizer.encode('{"name":"now","arguments":{}}</call>').ids

    quoted, meant = parser(tokenizer), parser(tokenizer)
    quoted.feed([*spelled, *rest])
    events = meant.feed([tokenizer.token_to_id("<call>"), *rest])
    quoted.finish()

    assert quoted.message.tool_calls == ()
    assert quoted.message.content.startswith("<call>")
    assert [event.name for event in events if isinstance(event, ToolCallStarted)] == ["now"]


def test_bytes_that_are_no_character_are_not_held_for_ever(tokenizer):
    """A model that writes broken UTF-8 is read all the same."""
    reader = parser(tokenizer)
    broken = tokenizer.encode("東").ids[0]

    events = reader.feed([broken] * (3 * MAX_HELD))

    assert events
    reader.finish()
    assert reader.message.content == "\ufffd" * (3 * MAX_HELD)


def test_special_ids_come_from_the_tokenizer(tokenizer):
    """Only the tokens that the tokenizer calls special are."""
    assert special_ids_of(tokenizer) == {tokenizer.token_to_id(text) for text in ("<call>", "</call>", "<|end|>")}


def test_the_cost_of_an_id_does_not_grow(tokenizer):
    """Each step decodes a few ids, however many came before."""

    class Counting:
        longest = 0

        def decode(self, ids, **options):
            self.longest = max(self.longest, len(ids))
            return tokenizer.decode(ids, **options)

    counting = Counting()
    reader = TokenParser(ChatTemplate.from_string(SOURCE).parser(), counting, special_ids=())

    reader.feed(tokenizer.encode("Grüße " * 200).ids)

    assert counting.longest <= 2 * MAX_HELD


def test_markers_that_are_added_but_not_special_are_read():
    """A token that was added is a marker when it comes as a token, whether the tokenizer calls it special or not."""
    made = Tokenizer(BPE(vocab={letter: at for at, letter in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    made.add_tokens([AddedToken(text, special=False) for text in ("<call>", "</call>")])
    reader = TokenParser(ChatTemplate.from_string(SOURCE).parser(tools=TOOLS), made)
    reader.feed(made.encode(ANSWER).ids)
    reader.finish()

    assert [call.name for call in reader.message.tool_calls] == ["now"]


def test_a_marker_that_the_tokenizer_lacks_is_read_in_letters():
    """A model that has no token for `<call>` begins calls with its letters; what is a token can still be quoted."""
    made: Any = Tokenizer(BPE(vocab={letter: at for at, letter in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), ByteLevelDecoder()
    made.add_special_tokens([AddedToken("<|end|>", special=True)])
    reader = TokenParser(ChatTemplate.from_string(SOURCE).parser(tools=TOOLS), made)
    ids = made.get_vocab()

    reader.feed([*map(ids.__getitem__, "<|end|>"), *made.encode(ANSWER).ids, ids["<|end|>"]])
    reader.finish()

    assert reader.message.content.strip() == "<|end|>Grüße, 東京 😀!"
    assert [call.name for call in reader.message.tool_calls] == ["now"]
