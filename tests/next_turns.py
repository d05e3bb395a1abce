"""A judge of `turn.next`: the text that a template writes between an answer and new messages.

Rules: the judge doesn't know how unrender continues a prompt. Jinja alone renders a whole conversation, and the text
after the answer's last word is the expected text. The answer is cut out of a rendering in which it's the last message.
Only two things come from the Format: the ends of turn that a model may sample, and the markers of reasoning that no
rendering shows. A case without a certain expected text is skipped and counted.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from next_turn_cases import (
    AGAIN,
    CONTENT,
    CYCLES,
    HISTORIES,
    KINDS,
    NAMES,
    NEWS,
    STYLES,
    THOUGHT,
    TOOLS,
    USER,
    USERS,
    WORDS,
    Case,
    Ids,
    Said,
    Verdict,
    assistant,
    call_ids,
    history,
    liberties,
    refusal_of,
    result,
    tool,
    verdict_of,
    without,
)
from plain_jinja import AXES, Message, Renderer, Shape

from unrender import ChatTemplate, Format, Turn


@dataclass(frozen=True)
class Shown:
    """An answer in a template's rendering: the text up to its last word, the word, and the rest as the last message."""

    text: str
    word: str
    tail: str
    style: Ids
    said: Said
    ids: tuple[str, ...]


class Judge:
    """The judge of all cases of a template."""

    def __init__(
        self,
        chat: ChatTemplate,
        source: str,
        *,
        bos: str = "<s>",
        eos: str = "</s>",
        extend: Callable[..., Turn] = lambda turn, *given, **settings: turn.next(*given, **settings),
    ) -> None:
        self.chat, self.renderer, self.extend = chat, Renderer(source, bos=bos, eos=eos), extend
        self.skipped: Counter[str] = Counter()
        self._turns: dict[str, Turn | None] = {}

    @cached_property
    def _format(self) -> Format:
        return self.chat.prepare_rendered(tools=TOOLS).format

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """The texts that may end a turn, longest first."""
        format = self._format
        texts = {text.strip() for text in (format.turn.end, *format.turn.ends, self.renderer.eos)}
        return tuple(sorted(texts - {""}, key=len, reverse=True))

    @cached_property
    def shape(self) -> Shape:
        """The form of messages of which the template shows the most."""
        shape = Shape()
        for name, values in AXES.items():
            shapes = [replace(shape, **{name: value}) for value in values]
            shape = max(shapes, key=self._shown)
        reasoning, joint = self._format.reasoning, self._format.turn.reasoning_to_content
        inside = replace(shape, thought="content", marks=(reasoning.start, reasoning.end, joint))
        fields = any(THOUGHT in (self._thinking(shape, kind) or "") for kind in KINDS)
        return inside if reasoning.end and not fields and self._shown(inside) > self._shown(shape) else shape

    def _thinking(self, shape: Shape, kind: str) -> str | None:
        return self._render([USER, assistant(KINDS[kind], ["proof0000", "proof0001"])], shape, TOOLS, ask=False)

    def _shown(self, shape: Shape) -> tuple[int, int]:
        """Return how much of some conversations a form shows, and how often unrender gives the same prompt."""
        style = STYLES[0]
        count, same = 0, 0
        for name in ("none", "system", "turn", "cycle", "thought", "all"):
            messages = history(name, style)
            text = self._render(messages, shape, TOOLS, ask=True)
            words = ("get_time", "Trondheim", "Wendeline", "Roros", "3 degrees", "Hm, hm.", "It was fine")
            count += sum(word in text for word in words if word != "Hm, hm." or name == "thought") if text else -1
            turn = self._prepared(messages, TOOLS, {})
            same += turn is not None and turn.prompt == text
        for kind in ("thought and content", "thought and call"):
            text = self._thinking(shape, kind)
            count += sum(word in text for word in KINDS[kind].words) if text else -1
        return count, same

    def _render(
        self, messages: Sequence[Message], shape: Shape, tools: Any, *, ask: bool, **variables: Any
    ) -> str | None:
        return self.renderer.render(shape.messages(messages), shape.tools(tools), ask=ask, **variables)

    def render(self, messages: Sequence[Message], *, ask: bool, tools: Any = None, **variables: Any) -> str | None:
        """Return the rendering of messages in OpenAI's form; None if the template rejects them."""
        said = {name: value for switch, value in variables.items() for name in (switch, *_SWITCHES.get(switch, ()))}
        return self._render(messages, self.shape, tools, ask=ask, **said)

    def _prepared(self, messages: Sequence[Message], tools: Any, variables: Mapping[str, Any]) -> Turn | None:
        key = json.dumps([messages, tools, dict(variables)])
        if key not in self._turns:
            try:
                self._turns[key] = self.chat.prepare(messages, tools=tools, **variables)
            except Exception:  # noqa: BLE001 -- refused for what reason ever
                self._turns[key] = None
        return self._turns[key]

    # Answers.

    def shown(self, before: str, kind: str, tools: Any, variables: Mapping[str, Any]) -> Shown | None:
        """Return an answer as the template shows it after a history, with the ids that it writes; None if uncertain."""
        return self._best(
            self._shown_with(style, history(before, style), KINDS[kind], tools, variables) for style in STYLES
        )

    def _best(self, found: Iterable[Shown | None]) -> Shown | None:
        """Return the first answer that contains its ids, otherwise the first one."""
        first = None
        for shown in found:
            if shown is not None and all(id in shown.text + shown.tail for id in shown.ids):
                return shown
            first = first or shown
        return first

    def _shown_with(
        self, style: Ids, before: list[Message], said: Said, tools: Any, variables: Mapping[str, Any]
    ) -> Shown | None:
        ids = call_ids(said, style, before)
        prompt = self.render(before, ask=True, tools=tools, **variables)
        whole = self.render([*before, assistant(said, ids)], ask=False, tools=tools, **variables)
        turn = self._prepared(before, tools, variables)
        if prompt is None or whole is None or turn is None:
            return None
        text = _behind(prompt, whole, turn, said)
        if text is None and said.thought:
            text = self._with_thought(prompt, turn, before, said, ids, tools, variables)
        if text is None or any(text.count(word) != 1 for word in said.words):
            return None
        last = max(said.words, key=text.find, default="")
        end = text.find(last) + len(last)
        shown = Shown(text[:end], last, text[end:], style, said, tuple(ids))
        if any(mark in shown.text for mark in self.ends):
            return None
        return shown if not said.words or self._is_read(turn, shown) else None

    def _with_thought(
        self, prompt: str, turn: Turn, before: list[Message], said: Said, ids: Sequence[str], tools: Any, variables: Any
    ) -> str | None:
        """Return an answer with reasoning that the template never shows. The Format supplies the markers."""
        without = self.render([*before, assistant(replace(said, thought=""), ids)], ask=False, tools=tools, **variables)
        reasoning, joints = turn.format.reasoning, turn.format.turn
        opened = bool(turn.prefill.strip()) and not reasoning.closed_in(turn.prefill)
        base = prompt.removesuffix(turn.prefill) if opened else prompt
        if without is None or not reasoning.end or not without.startswith(base):
            return None
        joint = joints.reasoning_to_content if said.content else joints.reasoning_to_tools if said.calls else ""
        start = "" if opened else reasoning.start
        return start + said.thought + reasoning.end + joint + without[len(base) :]

    def _is_read(self, turn: Turn, shown: Shown) -> bool:
        """Return whether unrender reads the answer as intended, since this judge doesn't test the parser."""
        message = turn.parse(shown.text + self.closers(shown.tail))
        names = [call.name for call in message.tool_calls]
        parts = (message.reasoning.strip(), message.content.strip(), names)
        said = shown.said
        return parts == (said.thought, said.content, [*NAMES[: len(said.calls)]])

    def closers(self, tail: str) -> str:
        """Return the part of `tail`, the text after the last word, that belongs to the answer.

        It ends before an end of turn.
        """
        found = [tail.find(end) for end in self.ends if end in tail]
        return tail[: min(found)] if found else tail

    # Cases.

    def verdicts(self, *, every: int = 1, offset: int = 0) -> Iterator[Verdict]:
        """Yield the verdicts on all cases. Of combinations of answers and histories, only one in `every` is checked."""
        for case in self.cases(every=every, offset=offset):
            yield self.judged(case)
        for case in self.policies():
            yield self.judged(case)
        yield from self.chained()

    def cases(self, *, every: int = 1, offset: int = 0) -> Iterator[Case]:
        """Yield the cases. Of the combinations of answers and histories, only one in `every`, always the same."""
        for number, made in enumerate(self._all()):
            if zlib.crc32(b"%d" % number) % every == offset:
                yield from made()
        yield from self.faults()

    def _all(self) -> Iterator[Callable[[], Iterator[Case]]]:
        switches: list[Mapping[str, Any]] = [{}]
        if self.chat.capabilities.supports_enable_thinking:
            switches += [{"enable_thinking": True}, {"enable_thinking": False}]
        for before, kind in product(HISTORIES, KINDS):
            offers = (TOOLS,) if KINDS[kind].calls or before in ("call", "cycle", "all") else (None, TOOLS)
            for tools, variables in product(offers, switches):
                yield lambda args=(before, kind, tools, variables): self._kind(*args)  # type: ignore[misc]

    def _kind(self, before: str, kind: str, tools: Any, variables: Mapping[str, Any]) -> Iterator[Case]:
        shown = self.shown(before, kind, tools, variables)
        if shown is None:
            self.skipped["the answer is not shown"] += 1
            return
        messages = history(before, shown.style)
        turn = self._prepared(messages, tools, variables)
        prompt = self.render(messages, ask=True, tools=tools, **variables)
        same = turn is not None and turn.prompt == prompt
        # A switch that unrender passes as another variable may have an effect only later.
        if (variables or not same) and not self._agrees(tools, **variables):
            self.skipped["another prompt than prepare's"] += 1
            return
        setting = (
            f"{kind} after {before}{'' if tools else ', no tools'}{', ' + str(dict(variables)) if variables else ''}"
        )
        for label, new, given in self._news(shown):
            known = None if same and zlib.crc32(label.encode()) % 2 else prompt
            basis = Case(
                label=f"{setting}: {label}", before=messages, new=given, tools=tools, variables=variables, prompt=known
            )
            yield from self._answers(basis, shown, new)
            if before in ("none", "cycle") and not variables and label in ("results", "user"):
                yield from self._switched(basis, shown, new)

    def _switched(self, basis: Case, shown: Shown, new: list[Message]) -> Iterator[Case]:
        """Yield the answer with another setting in the next turn."""
        for on in (True, False):
            switched = {"enable_thinking": on}
            if self.chat.capabilities.supports_enable_thinking and self._agrees(basis.tools, **switched):
                label = f"{basis.label}, then {switched}"
                yield from self._answers(replace(basis, label=label, settings=switched, switched=switched), shown, new)
        if basis.tools:
            label, choice = f'{basis.label}, then tool_choice="none"', {"tool_choice": "none"}
            yield from self._answers(replace(basis, label=label, settings=choice), shown, new)

    def _agrees(self, tools: Any, **variables: Any) -> bool:
        """Return whether unrender's first prompt is the template's own, without injected tools or renamed switches."""
        turn = self._prepared([USER], tools, variables)
        return turn is not None and turn.prompt == self.render([USER], ask=True, tools=tools, **variables)

    def _news(self, shown: Shown) -> Iterator[tuple[str, list[Message], list[Message]]]:
        """Yield new messages: a label, the template's form, and unrender's form."""
        ids = shown.ids
        every = [result(i, ids) for i in range(len(ids))]
        yield from ((label, new, new) for label, new in USERS.items())
        if not ids:
            return
        marks = "".join([*self.ends, shown.tail[-40:]])
        yield "results", every, every
        yield "results, user", [*every, AGAIN], [*every, AGAIN]
        yield "empty result", [result(0, ids, ""), *every[1:]], [result(0, ids, ""), *every[1:]]
        marked = [*every[:-1], result(len(ids) - 1, ids, f"{NEWS} {marks} b")]
        yield "markers in a result", marked, marked
        data = [*every[:-1], result(len(ids) - 1, ids, {"degrees": 7, NEWS: ["no", None]})]
        yield "object as a result", data, data
        yield "results without names", every, [without(it, "name") for it in every]
        yield "results without ids", every, [without(it, "tool_call_id") for it in every]
        yield "results by order", every, [without(it, "tool_call_id", "name") for it in every]
        strange = [it | {"tool_call_id": f"call_{i}x"} for i, it in enumerate(every)]
        yield "other ids", every, strange
        if len(ids) > 1:
            yield "results in the other order", every[::-1], every[::-1]
            yield "first result", every[:1], every[:1]
            yield "second result", every[1:], every[1:]
            yield "second result, user", [every[1], AGAIN], [every[1], AGAIN]

    def _answers(self, basis: Case, shown: Shown, new: list[Message], *, times: int = 1) -> Iterator[Case]:
        """Yield the answer with all its ends, and the text after each. Its last word occurs `times` times."""
        messages = [*basis.before, assistant(shown.said, shown.ids), *new]
        whole = self.render(messages, ask=True, tools=basis.tools, **{**basis.variables, **basis.switched})
        if whole is None:
            self.skipped["the template refuses the conversation"] += 1
            return
        if not shown.word:
            yield from self._nothing(basis, whole, new)
            return
        if whole.count(shown.word) != times:
            self.skipped["the answer's last word is not shown" if shown.word not in whole else "it is shown twice"] += 1
            return
        behind = whole.rpartition(shown.word)[2]
        if shown.said.calls and shown.word not in shown.said.calls[-1] and self._moves(basis, shown):
            behind = self._moved(basis, shown, new)
        if not self._shows(behind, new):
            self.skipped["a new message is not shown behind the answer"] += 1
            return
        yield from self._endings(basis, shown, behind)

    def _moves(self, basis: Case, shown: Shown) -> bool:
        """Return whether the template moves content after the results of later messages."""
        results = [result(i, shown.ids) for i in range(len(shown.ids))]
        messages = [*basis.before, assistant(shown.said, shown.ids), *results]
        whole = self.render(messages, ask=True, tools=basis.tools, **basis.variables) or ""
        return NEWS in whole.rpartition(shown.word)[0]

    def _moved(self, basis: Case, shown: Shown, new: Sequence[Message]) -> str:
        """Return the text after the last call if the template moves content after the results, without that content."""
        said = replace(shown.said, content="")
        word = next(word for word in reversed(said.words) if word in said.calls[-1])
        whole = self.render(
            [*basis.before, assistant(said, shown.ids), *new], ask=True, tools=basis.tools, **basis.variables
        )
        between = shown.text.rpartition(word)[2].replace(shown.said.content, "")
        behind = (whole or "").rpartition(word)[2]
        return behind.removeprefix(between) if behind.startswith(between) else ""

    def _shows(self, text: str, new: Sequence[Message]) -> bool:
        """Return whether a text contains all new messages. Text with markers may be written differently."""
        said = [message["content"] for message in new if isinstance(message["content"], str)]
        return all(content in text or (NEWS in text and content.startswith(NEWS)) for content in said)

    def _nothing(self, basis: Case, whole: str, new: Sequence[Message]) -> Iterator[Case]:
        """Yield the empty answer."""
        turn = self._prepared(basis.before, basis.tools, basis.variables)
        prompt = basis.prompt or (turn.prompt if turn else "")
        rest = whole[len(prompt) :] if whole.startswith(prompt) else ""
        if not rest or not self._shows(rest, new):
            self.skipped["an empty answer is not shown"] += 1
            return
        yield replace(basis, label=basis.label + ", nothing sampled", right=(rest,))
        for end in self.ends:
            if rest.lstrip().startswith(end):
                lead = rest[: len(rest) - len(rest.lstrip())]
                yield replace(
                    basis, label=f"{basis.label}, {end} alone", answer=lead + end, right=(rest[len(lead + end) :],)
                )

    def _endings(self, basis: Case, shown: Shown, behind: str) -> Iterator[Case]:
        closers = self.closers(shown.tail)
        if not behind.startswith(closers):
            closers = closers.rstrip()
        if not behind.startswith(closers):
            self.skipped["the end of the answer differs"] += 1
            return

        def case(label: str, tail: str, *right: str, **more: Any) -> Case:
            return replace(basis, label=f"{basis.label}, {label}", answer=shown.text + tail, right=right, **more)

        rest = behind[len(closers) :]
        if shown.word in shown.said.thought:
            ending = self._format.reasoning.end.strip()
            if ending not in shown.tail:
                self.skipped["a thought without an end"] += 1
                return
            # Once reasoning has ended, `<think>` without an end is content. Such an answer isn't cut in a thought.
            if self.turn(basis).parse(shown.text).reasoning.strip() == shown.said.thought:
                yield case("cut at its last word", "", *_without_layout(behind, ending))
            else:
                self.skipped["a cut thought that is read as content"] += 1
            if any(end in ending for end in self.ends):
                return
        yield case("whole", closers, rest)
        if closers.rstrip() != closers:
            yield case("tight", closers.rstrip(), behind[len(closers.rstrip()) :])
        if closers.strip() and not shown.said.calls and shown.word not in shown.said.thought:
            yield case("cut at its last word", "", behind)
        if rest.startswith("\n") or rest[:1].strip():
            yield case("a line break more", closers + "\n", rest.removeprefix("\n"))
        yield from self._sampled(case, closers, rest, shown.tail[len(closers) :])
        for label, text in liberties(shown.text + closers):
            yield replace(case(label, "", rest), answer=text)

    def _sampled(self, case: Callable[..., Case], closers: str, rest: str, last: str) -> Iterator[Case]:
        """Yield the answer with a sampled end of turn."""
        bare = rest.lstrip()
        lead = rest[: len(rest) - len(bare)]
        own = next((end for end in self.ends if bare.startswith(end)), "") or self._own_end(bare, last)
        for end in self.ends:
            if bare.startswith(end):
                yield case(f"with {end}", closers + lead + end, bare[len(end) :])
            elif last.lstrip().startswith(end):
                yield case(f"with its last {end}", closers + lead + end, bare.removeprefix(own) if own else rest)
            elif end == self.renderer.eos:
                yield case(
                    "with EOS", closers + lead + end, *([bare.removeprefix(own)] if own else []), rest, may_refuse=True
                )

    def _own_end(self, rest: str, last: str) -> str:
        """Return an end of turn that only earlier messages have: a marker that starts no header."""
        found = re.match(r"<\|?[^<>\s]+>", rest)
        headers = [header.strip() for header in self._format.turn.headers]
        ends = any(last.strip().startswith(end) for end in self.ends)
        return found[0] if found and ends and not any(found[0] in header for header in headers) else ""

    # Refusals, policies, and cycles.

    def faults(self) -> Iterator[Case]:
        """Yield the cases that must be refused."""
        for kind, user in (("content", [AGAIN]), ("call", [AGAIN]), ("thought and content", [AGAIN])):
            for tools in (TOOLS, None)[: 1 if kind == "call" else 2]:
                shown = self.shown("none", kind, tools, {})
                if shown is not None and self._agrees(tools):
                    label, before = f"{kind}{'' if tools else ', no tools'}: ", history("none", shown.style)
                    answer = shown.text + self.closers(shown.tail)
                    base = Case(label=label, before=before, answer=answer, new=user, tools=tools)
                    yield from self._faults(base, shown)
                    yield from self._cuts(base, shown)
                    break

    def _faults(self, base: Case, shown: Shown) -> Iterator[Case]:
        def fault(label: str, *reasons: str, **changed: Any) -> Case:
            return replace(base, label=base.label + label, reasons=reasons, **changed)

        yield fault("no message", new=())
        yield fault("an assistant", new=({"role": "assistant", "content": "Well."},))
        yield fault("a user, an assistant", new=(AGAIN, {"role": "assistant", "content": "Well."}))
        other = [tool("get_wind", "sea")]
        yield fault("other tools", "tools", settings={"tools": other})
        whole = self.render(
            [*base.before, assistant(shown.said, shown.ids), AGAIN], ask=True, tools=base.tools, **base.variables
        )
        rest = whole.rpartition(shown.word)[2] if whole and shown.word in whole else ""
        end = next((end for end in self.ends if end in rest and "<" in end), "")
        if end:
            yield fault("text behind an end", answer=f"{base.answer}{end}So much for now.")

    def _cuts(self, base: Case, shown: Shown) -> Iterator[Case]:
        """Yield a call that is cut off, and a stop inside reasoning."""
        if shown.said.calls:
            text = shown.text[:-3]
            message = self.turn(base).parse(text)
            whole = any(call.status == "complete" for call in message.tool_calls)
            if not whole and (message.tool_calls or message.failed_calls):
                ids = shown.ids
                for new in ((AGAIN,), (result(0, ids),), (result(0, ids), AGAIN)):
                    label = f"{base.label}cut in the call, {len(new)} {new[0]['role']}"
                    yield replace(base, label=label, answer=text, new=new, reasons=("call",))
                yield from self._cut_as_text(replace(base, answer=text))
        if shown.said.thought:
            text = shown.text[: shown.text.find(THOUGHT) + len(THOUGHT)]
            open_thought = THOUGHT in self.turn(base).parse(text).reasoning
            for end in self.ends if open_thought else ():
                if end not in self._format.reasoning.end:
                    yield replace(base, label=f"{base.label}{end} in the thought", answer=text + end)

    def _cut_as_text(self, base: Case) -> Iterator[Case]:
        """Yield a call that is cut off and read as text. If content has no markers, it ends as content does."""
        said = KINDS["content"]
        messages = [*base.before, assistant(said, ()), *base.new]
        whole = self.render(messages, ask=True, tools=base.tools) or ""
        last = self.render(messages[: -len(base.new)], ask=False, tools=base.tools) or ""
        plain = not self.closers(last.rpartition(CONTENT)[2]).strip() and not self._format.content.start.strip()
        if plain and whole.count(CONTENT) == 1:
            right = whole.rpartition(CONTENT)[2]
            label = f"{base.label}cut in the call, as text"
            yield replace(base, label=label, right=(right,), may_refuse=False, settings={"unfinished": "text"})

    def policies(self) -> Iterator[Case]:
        """Yield answers with reasoning under all policies for it. Reasoning inside content is never dropped."""
        if self.shape.thought == "content":
            return
        for kind, before in product(("thought and content", "thought and call"), ("none", "cycle")):
            shown = self.shown(before, kind, TOOLS, {})
            if shown is None or not self._agrees(TOOLS):
                continue
            for news, new, given in self._news(shown):
                label = f"{kind} after {before}: {news}"
                basis = Case(label=label, before=history(before, shown.style), new=given, tools=TOOLS)
                case = next((case for case in self._answers(basis, shown, new) if case.label.endswith(", whole")), None)
                if case is not None:
                    yield from self._policies(case, shown, new)

    def _policies(self, case: Case, shown: Shown, new: Sequence[Message]) -> Iterator[Case]:
        whole = self.render([*case.before, assistant(shown.said, shown.ids), *new], ask=True, tools=case.tools)
        dropped = THOUGHT not in (whole or "")
        user = any(message["role"] == "user" for message in case.new)
        for policy in ("template", "tool_cycle"):
            refused = dropped and (user or policy == "template")
            yield replace(
                case,
                label=f'{case.label}, thoughts="{policy}"',
                settings={"thoughts": policy},
                right=() if refused else case.right,
                reasons=("thoughts",) if refused else (),
                may_refuse=policy == "tool_cycle" and user,
            )

    def chained(self) -> Iterator[Verdict]:
        """Yield the verdicts on conversations of several turns."""
        for kinds in CYCLES:
            for tools in (TOOLS, None)[: 1 if any(KINDS[kind].calls for kind in kinds) else 2]:
                if self._agrees(tools):
                    yield from self._chained(kinds, tools)

    def _chained(self, kinds: Sequence[str], tools: Any) -> Iterator[Verdict]:
        messages, turn = [USER], self._prepared([USER], tools, {})
        for number, kind in enumerate(kinds):
            shown = self._best(self._shown_with(style, messages, KINDS[kind], tools, {}) for style in STYLES)
            if shown is None or turn is None:
                self.skipped["the answer is not shown"] += 1
                return
            new = [result(i, shown.ids) for i in range(len(shown.ids))] or [AGAIN]
            label = f"turn {number} of {', '.join(kinds)}"
            basis = Case(label=label, before=messages, new=new, tools=tools)
            cases = [*self._answers(basis, shown, new, times=1 + [*_words(messages)].count(shown.word))]
            if not cases:
                return
            case = cases[len(messages) % len(cases)]
            verdict, turn = self.extended(turn, case)
            yield verdict
            if verdict.word != "right":
                return
            messages = [*messages, assistant(shown.said, shown.ids), *new]

    # Verdicts.

    def turn(self, case: Case) -> Turn:
        """Return the turn of a case, prepared from messages or from a rendered prompt."""
        if case.prompt is not None:
            return self.chat.prepare_rendered(case.prompt, tools=case.tools, **case.variables)
        turn = self._prepared(case.before, case.tools, case.variables)
        assert turn is not None
        return turn

    def judged(self, case: Case) -> Verdict:
        """Return the verdict on a case."""
        return self.extended(self.turn(case), case)[0]

    def extended(self, turn: Turn, case: Case) -> tuple[Verdict, Turn | None]:
        """Return the verdict on a case, and the next turn if there is one."""
        try:
            new = self.extend(turn, case.answer, list(case.new), **case.settings)
        except Exception as error:  # noqa: BLE001 -- a refusal, or a fault
            return refusal_of(case, error), None
        return verdict_of(turn, case, new), new


def _words(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the last words of the answers in a conversation."""
    text = json.dumps(messages)
    for word in WORDS:
        yield from [word] * text.count(word)


_SWITCHES = {"enable_thinking": ("thinking",)}


def _without_layout(behind: str, ending: str) -> list[str]:
    """Return the variants of the text after reasoning that was cut off: the layout before content is optional."""
    at = behind.find(ending) + len(ending)
    rest = behind[at:]
    return [behind[:at] + rest[i:] for i in range(len(rest) - len(rest.lstrip()) + 1)]


def _behind(prompt: str, whole: str, turn: Turn, said: Said) -> str | None:
    """Return the text after the prompt in a rendering. The history may omit reasoning that the prompt started."""
    if whole.startswith(prompt):
        return whole[len(prompt) :]
    base = prompt.removesuffix(turn.prefill)
    reasoning = turn.format.reasoning
    whole_thought = reasoning.closed_in(turn.prefill)
    only_words = bool(said.thought) and not reasoning.opened_in(turn.prefill)
    dropped = turn.prefill and (whole_thought or only_words)
    return whole[len(base) :] if dropped and whole.startswith(base) else None
