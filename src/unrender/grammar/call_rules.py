"""Writes one tool call as nodes: the function's skeleton, with arguments in the orders that templates write.

Rules: arguments are in the order in which the schema declares them, or sorted by name: templates write the caller's order
or sort it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unrender.format import Arguments, Containers, Slot
from unrender.grammar.argument_rules import ArgumentWriter, CallContext
from unrender.grammar.call_shapes import ANY_OBJECT, after_arguments, may_be_empty
from unrender.grammar.spelling import EMPTY, Entry, Extra, chain
from unrender.nodes import Call, Chars, Choice, Literal, Node, Optional, Ref, Role, Sequence, Tag
from unrender.nodes.patterns import choice
from unrender.nodes.texts import WORDS, all_but
from unrender.schema import shapes
from unrender.schema.reader import Reading
from unrender.schema.shapes import Object, Property, alternatives, union

_ID = Chars((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")), minimum=1, maximum=64)
_LETTERS_AND_DIGITS = (("0", "9"), ("A", "Z"), ("a", "z"))
_COUNTER = Choice((Literal("0"), Sequence((Chars((("1", "9"),)), Chars((("0", "9"),), minimum=0, maximum=3)))))


def call_node(call: Call, name: str, parameters: Reading, context: CallContext) -> Node:
    """Return the node of a call to the function `name`, whose arguments obey `parameters`."""
    argument = ArgumentWriter(call.arguments, name, parameters, context, after_arguments(call))
    length = call.id_length
    id = Chars(_LETTERS_AND_DIGITS, minimum=length, maximum=length) if length else _ID
    writer = _CallWriter(call.arguments, context, argument, id)
    return Sequence(tuple(writer.part(part) for part in call.function))


@dataclass(slots=True)
class _CallWriter:
    arguments: Arguments
    context: CallContext
    argument: ArgumentWriter
    id: Node

    @property
    def is_json_object(self) -> bool:
        bare = not (self.arguments.start or self.arguments.end)
        return self.argument.codec.containers is Containers.JSON and not self.arguments.entry and bare

    def part(self, part: str | Slot) -> Node:
        match part:
            case Slot.NAME:
                return Tag(Role.NAME, Literal(self.argument.tool))
            case Slot.ARGUMENTS:
                return Tag(Role.ARGUMENT, self.all_arguments())
            case Slot.ID:
                return Tag(Role.ID, self.id)
            case Slot.INDEX:
                return _COUNTER
            case Slot():
                return EMPTY
        return Literal(part)

    def all_arguments(self) -> Node:
        """Return the node of all arguments together."""
        objects = self.argument.objects or [ANY_OBJECT]
        written = self.entries if self.arguments.entry else self.json_object
        options = [node for shape in objects for node in written(shape)]
        empty = None if self.is_json_object and self.arguments.when_empty == "{}" else self.arguments.when_empty
        if empty is not None and any(map(may_be_empty, objects)):
            options.append(Literal(empty))
        return choice(list(dict.fromkeys(options)))

    # One JSON object.

    def json_object(self, shape: Object) -> Iterator[Node]:
        """Yield the one value that all arguments are, with what is around it."""
        argument, start, end = self.argument, self.arguments.start, self.arguments.end
        node = argument.container(shape, argument.hint)
        yield Sequence((Literal(start), node, Literal(end))) if start + end else node

    # One entry for each argument.

    def entries(self, shape: Object) -> Iterator[Node]:
        """Yield the arguments in the order of the schema and, where that differs, sorted."""
        written = [found for item in shape.properties for found in self.written_property(item)]
        hint = self.argument.hint
        bodies = {item.name: self.argument.entry(item.name, item.shape, f"{hint}-{item.name}") for item in written}
        nodes = {name: self.rule(name, body) for name, body in bodies.items()}
        properties = tuple(written)
        orders = dict.fromkeys((properties, tuple(sorted(properties, key=lambda item: item.name))))
        extra = self.extra(shape)
        for order in orders:
            items = [Entry(nodes[item.name], item.required) for item in order]
            body = chain(items, extra, Literal(self.arguments.separator), self.context.rules, self.argument.hint)
            optional = not any(item.required for item in order) and not (extra and extra.minimum)
            yield from self.enclosed(body, optional)

    def enclosed(self, body: Node | None, optional: bool) -> Iterator[Node]:
        """Yield the arguments with what is around them; none at all is `when_empty`, if that is something else."""
        elsewhere = self.arguments.when_empty is not None
        if body is None and elsewhere:
            return
        inside = EMPTY if body is None else Optional(body) if optional and not elsewhere else body
        yield Sequence((Literal(self.arguments.start), inside, Literal(self.arguments.end)))

    def written_property(self, item: Property) -> Iterator[Property]:
        """Yield the property as it is written: where null is left out, null is an absent argument."""
        if not self.argument.codec.omits_null:
            yield item
            return
        options = list(alternatives(item.shape))
        kept = [option for option in options if option not in (shapes.Null(), shapes.Constant("null"))]
        if kept:
            yield Property(item.name, union(kept), item.required and len(kept) == len(options))

    def rule(self, name: str, node: Node) -> Ref:
        return self.context.rules.add(f"{self.argument.hint}-{name}", node)

    def extra(self, shape: Object) -> Extra | None:
        """Return arguments that the schema does not name; None where their names cannot be written."""
        if not shape.extra:
            return None
        if self.arguments.entry.count(Slot.KEY) != 1:
            self.context.report(
                "#", "additionalProperties", "the argument's name is written twice, and may be anything"
            )
            return None
        key = all_but({"", *(item.name for item in shape.properties)}, WORDS)
        value = union([value for _, value in shape.extra])
        node = self.argument.entry(key, value, f"{self.argument.hint}-extra")
        return Extra(self.rule("extra", node), shape.minimum, shape.maximum)
