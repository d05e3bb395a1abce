"""Token ids are converted to events, with a real byte-level tokenizer."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from byte_tokenizer import byte_level
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import Metaspace as MetaspaceDecoder
from tokenizers.pre_tokenizers import Metaspace

from unrender import ChatTemplate, ContentText, Message
from unrender.errors import TokenizerError
from unrender.integrations.rendered import tail_text
from unrender.limits import MAX_FEW
from unrender.token_ids import ChunkParser, PromptEncoder, TokenParser, special_ids_of

SOURCE = """{%- for m in messages -%}<|{{ m.role }}|>{{ m.content }}
{%- for call in m.tool_calls or [] -%}
<call>{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}</call>
{%- endfor -%}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
TOOLS = [{"name": "now", "parameters": {"type": "object", "properties": {}}}]
ANSWER = 'Grüße, 東京 😀! <call>{"name": "now", "arguments": {}}</call>'


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A tokenizer of single bytes."""
    return byte_level()


def parser(tokenizer: Tokenizer) -> TokenParser:
    template = ChatTemplate.from_string(SOURCE)
    turn = template.prepare([{"role": "user", "content": "Hi"}], tools=TOOLS)
    return TokenParser(turn.parser(), tokenizer)


def read(tokenizer: Any, ids: Any) -> Message:
    """Return the message of ids."""
    reader = parser(tokenizer)
    reader.feed(ids)
    reader.finish()
    return reader.message


def test_ids_give_what_the_text_gives(tokenizer):
    """Fed one id at a time, the message equals that of the whole text. Partial characters are held back."""
    reader = parser(tokenizer)

    events = [event for token in tokenizer.encode(ANSWER).ids for event in reader.feed(token)]
    events += reader.finish()

    assert reader.message.content.strip() == "Grüße, 東京 😀!"
    assert [call.name for call in reader.message.tool_calls] == ["now"]
    assert not any("\ufffd" in event.text for event in events if isinstance(event, ContentText))


def test_a_spelled_out_special_token_is_a_quotation(tokenizer):
    """A marker in ordinary text doesn't start a call, but the marker's own id does."""
    spelled = [tokenizer.token_to_id(letter) for letter in "<call>"]
    rest = tokenizer.encode('{"name":"now","arguments":{}}</call>').ids

    quoted = read(tokenizer, [*spelled, *rest])

    assert (quoted.tool_calls, quoted.content[:6]) == ((), "<call>")
    assert [call.name for call in read(tokenizer, [tokenizer.token_to_id("<call>"), *rest]).tool_calls] == ["now"]


CALL = '{"name":"now","arguments":{}}'
SPELLED = "The marker <call>" + CALL + "</call> calls a tool. "


def chunks(tokenizer: Tokenizer, *parts: str | int) -> list[tuple[str, list[int]]]:
    """Return texts and their ids, with one chunk for each character or special token."""
    pairs: list[tuple[str, list[int]]] = []
    for part in parts:
        if isinstance(part, int):
            pairs.append((tokenizer.decode([part], skip_special_tokens=False), [part]))
        else:
            pairs += [(letter, tokenizer.encode(letter).ids) for letter in part]
    return pairs


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_with_ids_tell_markers_from_text(tokenizer, size):
    """At any chunking, a marker in ordinary text stays text, and the token with the same text starts a call."""
    opens, closes = map(tokenizer.token_to_id, ("<call>", "</call>"))
    pairs = chunks(tokenizer, SPELLED, opens, CALL, closes)
    reader = ChunkParser(parser(tokenizer).parser, {opens: "<call>", closes: "</call>"}, tokenizer)

    for at in range(0, len(pairs), size):
        some = pairs[at : at + size]
        reader.feed("".join(text for text, _ in some), [id for _, ids in some for id in ids])
    reader.finish()

    assert reader.message.content.strip() == SPELLED.strip()
    assert [call.name for call in reader.message.tool_calls] == ["now"]


@pytest.mark.parametrize("lag", [1, 3, 6])
def test_text_that_lags_behind_its_ids_is_parsed_without_them(tokenizer, lag):
    """If an engine holds back text for stop strings, no call is lost."""
    opens, closes = map(tokenizer.token_to_id, ("<call>", "</call>"))
    pairs = chunks(tokenizer, "Hi. ", opens, CALL, closes)
    whole, given = "".join(text for text, _ in pairs), 0
    reader = ChunkParser(parser(tokenizer).parser, {opens: "<call>", closes: "</call>"}, tokenizer)

    for at, (_, ids) in enumerate(pairs):
        sent = max(len("".join(text for text, _ in pairs[: at + 1])) - lag, given)
        reader.feed(whole[given:sent], ids)
        given = sent
    reader.feed(whole[given:], [])
    reader.finish()

    assert [call.name for call in reader.message.tool_calls] == ["now"]
    assert reader.message.content.strip() == "Hi."


def test_the_token_that_ends_an_answer_may_be_missing_in_the_text(tokenizer):
    """Engines drop the end of turn from the text, but not from the ids."""
    end = tokenizer.token_to_id("<|end|>")
    special = {tokenizer.token_to_id(text): text for text in ("<call>", "</call>", "<|end|>")}
    pairs = chunks(tokenizer, SPELLED)
    reader = ChunkParser(parser(tokenizer).parser, special, tokenizer)

    reader.feed("".join(text for text, _ in pairs), [*(id for _, ids in pairs for id in ids), end])
    reader.finish()

    assert reader.message.content == SPELLED


def test_bytes_that_are_no_character_are_not_held_for_ever(tokenizer):
    """Invalid UTF-8 from a model isn't held back forever."""
    reader = parser(tokenizer)
    broken = tokenizer.encode("東").ids[0]

    events = reader.feed([broken] * (3 * MAX_FEW))

    assert events
    reader.finish()
    assert reader.message.content == "\ufffd" * (3 * MAX_FEW)


class Cleaning:
    """A transformers tokenizer that removes spaces before punctuation unless the caller turns this off."""

    clean_up_tokenization_spaces = True
    added_tokens_decoder: ClassVar[dict[int, str]] = {0: "<s>"}

    def decode(self, ids, *, skip_special_tokens, clean_up_tokenization_spaces=None):
        """Return the text of ids, cleaned up as transformers does by default."""
        assert not skip_special_tokens
        text = "".join(map(chr, ids))
        return text if clean_up_tokenization_spaces is False else text.replace(" .", ".").replace(" ,", ",")


def test_spaces_before_punctuation_stay():
    """A tokenizer that cleans up spaces doesn't change text, whether ids come one by one or together."""
    text = "git add . && echo 'a , b' ?"

    assert read(Cleaning(), map(ord, text)).content == text
    assert tail_text(Cleaning(), [*map(ord, text)]) == text


def test_special_ids_come_from_the_tokenizer(tokenizer):
    """Only tokens that the tokenizer marks as special are special."""
    assert special_ids_of(tokenizer) == {tokenizer.token_to_id(text) for text in ("<call>", "</call>", "<|end|>")}


def test_the_cost_of_an_id_does_not_grow(tokenizer):
    """Each step decodes only a few ids, however many came before."""

    class Counting:
        longest = 0

        def decode(self, ids, **options):
            self.longest = max(self.longest, len(ids))
            return tokenizer.decode(ids, **options)

    counting = Counting()
    reader = TokenParser(ChatTemplate.from_string(SOURCE).prepare_rendered().parser(), counting, special_ids=())

    reader.feed(tokenizer.encode("Grüße " * 200).ids)

    assert counting.longest <= 2 * MAX_FEW


def test_markers_that_are_added_but_not_special_are_read():
    """An added token is a marker as a token, whether the tokenizer marks it as special or not."""
    made = byte_level(())
    made.add_tokens([AddedToken(text, special=False) for text in ("<call>", "</call>")])

    assert [call.name for call in read(made, made.encode(ANSWER).ids).tool_calls] == ["now"]


def test_a_marker_that_the_tokenizer_lacks_is_read_in_letters():
    """A model without a token for `<call>` starts calls with its letters. Markers with tokens can still be quoted."""
    made = byte_level(["<|end|>"])
    ids = made.get_vocab()

    message = read(made, [*map(ids.__getitem__, "<|end|>"), *made.encode(ANSWER).ids, ids["<|end|>"]])

    assert message.content.strip() == "<|end|>Grüße, 東京 😀!"
    assert [call.name for call in message.tool_calls] == ["now"]


# Pieces of prompts.


def words(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    return [tokenizer.decode([id], skip_special_tokens=False) for id in ids]


def test_a_body_spells_special_tokens_and_scaffold_has_them(tokenizer):
    """The same text is one id in the template's own text, and letters in a message."""
    encoder = PromptEncoder(tokenizer)

    encoded = encoder.prompt([("<call>", False), ("<call> <<|end|> <|end", True), ("|>", False), ("<|end|>", False)])

    assert "".join(words(tokenizer, encoded.ids)) == "<call><call> <<|end|> <|end|><|end|>"
    special = [piece for id, piece in zip(encoded.ids, encoded.pieces, strict=True) if id in encoder.special_ids]
    assert special == [0, 3]


def test_each_id_belongs_to_the_piece_that_it_begins_in(tokenizer):
    """Ids of multi-byte characters are counted in their piece, and empty pieces have none."""
    encoded = PromptEncoder(tokenizer).prompt([("a", False), ("", True), ("東", True), ("<|end|>", False)])

    assert encoded.pieces == [0, 2, 2, 2, 3]


def test_merges_are_those_of_the_whole_text():
    """Pieces without special tokens are encoded like the rendered prompt."""
    made = byte_level(vocabulary={"Ġ": 0, "a": 1, "Ġa": 2, "x": 3, "Ċ": 4}, merges=[("Ġ", "a")])

    encoded = PromptEncoder(made).prompt([(" ", False), ("a", True)])

    assert encoded == ([2], [0])


def test_what_follows_gets_no_space():
    """A tokenizer that puts a space before each text doesn't put one before appended text."""
    made = byte_level(vocabulary={"▁": 0, "a": 1, "x": 2, "\n": 3})
    made.pre_tokenizer, made.decoder = Metaspace(prepend_scheme="first"), MetaspaceDecoder(prepend_scheme="first")
    encoder = PromptEncoder(made)

    assert words(made, encoder.continuation([("a", True)]).ids) == ["a"]
    assert len(encoder.prompt([("a", True)]).ids) == 2


def test_a_tokenizer_must_tell_its_special_tokens():
    """If the special tokens are unknown, a message could contain one unnoticed."""
    with pytest.raises(TokenizerError, match="expected a tokenizer that lists its special tokens"):
        PromptEncoder(byte_level(special=()))


def test_a_special_token_of_one_letter_cannot_be_spelled():
    """A message that contains a special token of one letter is an error with the token and the message."""
    encoder = PromptEncoder(byte_level(special=("§",)))

    assert encoder.prompt([("§", False)]).ids == [encoder.special_tokens["§"]]
    with pytest.raises(TokenizerError, match="cannot encode '§' as ordinary text, found in a message: 'a § b'"):
        encoder.prompt([("a § b", True)])


def test_a_tokenizer_without_offsets(tokenizer):
    """If a tokenizer provides no offsets, decoding shows which piece an id belongs to."""

    class Slow:
        added_tokens_decoder = tokenizer.get_added_tokens_decoder()

        def encode(self, text, *, add_special_tokens):
            return tokenizer.encode(text, add_special_tokens=add_special_tokens).ids

        def decode(self, ids, *, skip_special_tokens):
            return tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)

    pieces = [("a<call>", False), ("東 <call>", True), ("!", False)]

    assert PromptEncoder(Slow()).prompt(pieces) == PromptEncoder(tokenizer).prompt(pieces)
