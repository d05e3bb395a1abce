"""Format strings, and what is known of their widths before they are written."""

from __future__ import annotations

import pytest
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from unrender.rendering.cost import CostBudget, Exhausted, Limits
from unrender.rendering.growth import Formatting, format_method, percent_widths


def formatted(text, *args, characters=10**6, name="format", **kwargs):
    budget = CostBudget(Limits(characters=characters))
    return Formatting(SandboxedEnvironment(), lambda: budget, text, name)(*args, **kwargs)


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("nothing", []),
        ("%s", []),
        ("%5d", [5]),
        ("%-05d", [5]),
        ("% +#7d", [7]),
        ("%5.2f", [5, 2]),
        ("%.3s", [3]),
        ("%.f", []),
        ("%*d", [None]),
        ("%*.*f", [None, None]),
        ("%d %7d %8s", [7, 8]),
        ("%%7d", []),
        ("%5%6d", [5]),
        ("%(a)7s", [7]),
        ("%(a(b)c)7s%(d)8s", [7, 8]),
        ("%(a)b)7s", []),
        ("%(open 9s", []),
        ("100%", []),
        ("%" + "9" * 30 + "d", [999_999_999_999]),
    ],
)
def test_widths_are_scanned_as_python_scans_them(text, widths):
    """Every width and precision is found; a star takes its own from the arguments, and a name has none."""
    assert list(percent_widths(text)) == widths


class Own:
    def format(self):
        """Return nothing; another method of that name."""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x".format, ("x", "format")),
        ("x".format_map, ("x", "format_map")),
        (Markup("x").format, (Markup("x"), "format")),
        ("x".upper, None),
        (str.format, None),
        (Own().format, None),
        ("format", None),
    ],
)
def test_methods_that_format_are_known(value, expected):
    """Only the two methods of a text itself are replaced."""
    assert format_method(value) == expected


@pytest.mark.parametrize(
    ("text", "args", "kwargs", "expected"),
    [
        ("{}-{}", ("a", 1), {}, "a-1"),
        ("{1}{0}", ("a", "b"), {}, "ba"),
        ("{a!r:>5}", (), {"a": "x"}, "  'x'"),
        ("{:{}}|", ("x", 3), {}, "x  |"),
        ("{0[a][1]}", ({"a": [7, 8]},), {}, "8"),
        ("{{}}", (), {}, "{}"),
        ("{:05.1f}", (2.25,), {}, "002.2"),
    ],
)
def test_fields_are_written_as_python_writes_them(text, args, kwargs, expected):
    """A format string gives what Python gives."""
    assert formatted(text, *args, **kwargs) == expected


def test_a_map_gives_the_fields():
    """`format_map` takes its fields from one mapping."""
    assert formatted("{a}", {"a": 1}, name="format_map") == "1"


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), (({}, {}), {}), (("a",), {}), (({},), {"a": 1})])
def test_a_map_is_one_mapping(args, kwargs):
    """Anything but one mapping is refused, as Python does."""
    with pytest.raises(TypeError, match=r"format_map\(\) takes exactly one mapping"):
        formatted("{a}", *args, name="format_map", **kwargs)


@pytest.mark.parametrize(
    ("text", "args", "cost"),
    [
        ("{:10}", ("x",), 10),
        ("{:{}}", ("x", 30), 30),
        ("{:7.5f}", (1.5,), 12),  # both numbers of the field, whatever it writes
        ("{}", ("abcdefghijk",), 11),
        ("{}", ([1, 2],), 36),  # a list is weighed before it is written
        ("{!r}", ([1, 2],), 36),
    ],
)
def test_a_field_needs_room(text, args, cost):
    """A field is measured before it is padded, after the fields in its own width are filled in."""
    assert formatted(text, *args, characters=cost)

    with pytest.raises(Exhausted, match=f"more than {cost - 1} characters"):
        formatted(text, *args, characters=cost - 1)


def test_a_width_without_end_is_refused():
    """A width of any length is read in no time."""
    with pytest.raises(Exhausted, match="1000000 characters"):
        formatted("{:" + "9" * 5000 + "}", 1)


def test_escaped_text_stays_escaped():
    """What goes into a text that is safe in HTML is escaped, and the text remains one."""
    written = formatted(Markup("<b>{}</b>"), "<")

    assert written == Markup("<b>&lt;</b>")
    assert type(written) is Markup


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("{}", object(), "<object object>"),
        ("{!r}", [object()], "[<object object>]"),
        ("{}", "x".upper, "<method upper>"),
    ],
)
def test_no_address_is_written(text, value, expected):
    """A value that has no text of its own is written alike in every process."""
    assert formatted(text, value) == expected


@pytest.mark.parametrize("name", ["format", "format_map"])
def test_the_method_is_shown_by_its_name(name):
    """A template that prints the method sees which it is."""
    method = Formatting(SandboxedEnvironment(), lambda: CostBudget(Limits()), "x", name)

    assert repr(method) == f"<method {name}>"


def test_private_attributes_are_out_of_reach():
    """A field cannot climb from a value into Python; it is empty."""
    with pytest.raises(Exception, match="unsafe"):
        formatted("{0.__class__.__mro__}", "x")
