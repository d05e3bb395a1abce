"""Where requests end: any chunking gives the same, and what is taken is what another parser reads."""

from __future__ import annotations

from itertools import pairwise

import h11
from hypothesis import given, settings
from hypothesis import strategies as st

from unrender.gateway.http.framing import Framing
from unrender.limits import LONGEST_HEAD_OF_REQUEST, MOST_HEADERS

VALUES = st.text("ab,;= \t\x80é", max_size=6).map(lambda text: text.strip(" \t"))
BODIES = st.binary(max_size=40)


@st.composite
def requests(draw):
    """Return a request that has one reading."""
    method = draw(st.sampled_from(["GET", "POST", "DELETE"]))
    lines = [f"{method} /{draw(st.sampled_from(['', 'v1/models', 'a?b=%20']))} HTTP/1.1", "host: x:80"]
    lines += [f"x-{name}: {value}" for name, value in draw(st.dictionaries(st.sampled_from("abc"), VALUES)).items()]
    chunks = draw(st.lists(BODIES.filter(bool), max_size=3))
    whole = b"".join(chunks)
    if draw(st.booleans()):
        body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        lines.append("Transfer-Encoding: chunked")
    else:
        body = whole
        lines += [f"content-length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body, whole


def pieces(data, cuts):
    """Return the data cut at these places."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places)]


def read_by_h11(data):
    """Return the bodies of the requests in the data, as h11 reads them."""
    found, connection = [], h11.Connection(h11.SERVER)
    connection.receive_data(data)
    while True:
        match connection.next_event():
            case h11.Request():
                found.append(b"")
            case h11.Data(data=part):
                found[-1] += bytes(part)
            case h11.EndOfMessage():
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
            case _:
                return found


@given(st.lists(requests(), min_size=1, max_size=3), st.lists(st.integers(0), max_size=5))
def test_requests_are_taken_whole_however_they_come(sent, cuts):
    """Requests with one reading are taken to the last byte at any chunking, and h11 finds the same bodies."""
    data = b"".join(request for request, _ in sent)
    framing = Framing()

    taken = b"".join(framing.take(piece) for piece in pieces(data, cuts))

    assert (taken, framing.refused, framing.empty) == (data, None, True)
    assert read_by_h11(taken) == [body for _, body in sent]


@given(
    requests(), st.integers(0), st.sampled_from([b"", b" ", b"\r", b"\n", b"\x00", b":", b"5", b"\r\n"]), st.integers(0)
)
@settings(max_examples=300)
def test_what_is_taken_is_what_another_parser_reads(request, at, put, cut):
    """Of bytes that were changed anywhere, what is taken is read by h11 without an error; any chunking refuses alike."""
    data = request[0]
    at %= len(data)
    data = data[:at] + put + data[at + 1 :]
    whole, parts = Framing(), Framing()

    taken = whole.take(data)
    cut_up = b"".join(parts.take(piece) for piece in pieces(data, [cut]))

    assert (whole.refused is None) == (parts.refused is None)
    assert whole.refused is None or taken == cut_up
    read_by_h11(taken)


def test_large_heads_are_refused():
    """A head has a bound, in bytes and in headers; both are told apart from what is wrong."""
    long, many = Framing(), Framing()

    long.take(b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * LONGEST_HEAD_OF_REQUEST)
    many.take(b"GET / HTTP/1.1\r\nhost: x\r\n" + b"x: a\r\n" * MOST_HEADERS + b"\r\n")

    assert long.refused is not None
    assert many.refused is not None
    assert long.refused.status == many.refused.status == 431
