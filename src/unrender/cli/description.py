"""Describes a `Format` for people, as sample answers, a summary with one row per topic, or all fields.

Rules: slots are enclosed in «…», because piped output has no colours to mark them. Each row of the summary fits on one line if possible.
"""

from __future__ import annotations

from collections.abc import Iterator

from unrender.analysis import Analysis, Capabilities
from unrender.cli.terminal import NO_STYLE, ROLES, Row, Styled
from unrender.conversation.offer import Plan, call_form
from unrender.format import Format
from unrender.format.picture import PicturePiece, call_picture, field_texts, format_rows, inline


def answers(analysis: Analysis, format: Format | None = None) -> list[Styled]:
    """Return complete sample answers, up to the end of the turn, in the analysis's format or in the `format` of a turn."""
    return [[_styled(piece) for piece in row] for row in analysis._pictures(format)]


def summary_rows(analysis: Analysis, plan: Plan) -> Iterator[Row]:
    """Yield a row for each topic of the summary."""
    rows = format_rows(analysis.format, analysis.capabilities.thinking_off)
    for topic, text in rows.items():
        yield topic, text
        if topic == "Tool calls" and plan.offers:
            yield "Tools", f"described in the system message, called as {inline(call_form(plan.format.tools))}"
    yield "Conversation", "; ".join(_conversation(analysis.capabilities))
    if analysis.diagnostics:
        yield "Not found", "; ".join(analysis.diagnostics)
    yield "Next", "unrender verify · unrender lint · unrender serve"


def _conversation(capabilities: Capabilities) -> Iterator[str]:
    yield f"tools: {'yes' if capabilities.supports_tools else 'no'}"
    if not capabilities.supports_system_role:
        yield "no system message"
    if capabilities.requires_nonnull_content and capabilities.supports_tool_calls:
        yield 'content: null is rejected, unrender sends ""'
    if refused := [*dict.fromkeys(refusal.feature for refusal in capabilities.refuses)]:
        yield f"refuses {refused[0]}" + (f" and {len(refused) - 1} more (--all)" if refused[1:] else "")


def field_rows(format_: Format) -> Iterator[Row]:
    """Yield the fields that differ from their defaults, followed by the other call syntaxes."""
    for path, text in field_texts(format_):
        yield path, repr(text)
    for tools in format_.tolerated:
        yield "tolerated", f"{''.join(_styled(piece)[0] for piece in call_picture(tools))!r}  {tools.why}"
    for spelling in format_.spellings:
        yield f"{spelling.marker!r} also as", ", ".join(map(repr, spelling.others))


def _styled(piece: PicturePiece) -> tuple[str, str]:
    return piece.text if piece.role == "marker" else f"«{piece.text}»", ROLES.get(piece.role, NO_STYLE)
