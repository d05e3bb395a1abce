// The replay of an output: the parser's results after each chunk. Drawing a step takes a few milliseconds, even for a long output.

import { make } from "./dom.js";

const LONGEST = 4000; // Maximum length of a text in a message or an event, in characters.
const SHOWN = 100; // Maximum number of listed events and deltas.
const CALLS = 20; // Maximum number of calls that a message shows.

/** Maps each event's name to the role of its text. */
const SAYS = { ReasoningText: "reasoning", ContentText: "content", ToolCallStarted: "name", ArgumentsText: "argument", Malformed: "malformed" };

export class Film {
  /** `found` is the response to "read". `parts` returns the parts of the format for a role and a text. */
  constructor(found, output, parts) {
    const at = positions(output);
    const spans = found.spans.map(({ role, start, end }) => ({ role, from: at(start), to: at(end) }));
    Object.assign(this, found, { output, parts, at, spans });
    this.total = found.steps.at(-1).fed;
  }

  step(index) {
    return index ? this.steps[index - 1] : { fed: 0, settled: 0 };
  }

  said(index) {
    const { fed, settled } = this.step(index);
    const buffered = fed > settled ? ` · ${fed - settled} buffered` : "";
    const coarser = this.coarser ? ` · ${this.chunk ? `chunks of ${this.chunk}` : "joined chunks"}, at most 5,000` : "";
    return `${fed} / ${this.total} characters${buffered}${coarser}`;
  }

  /** Return ranges of the output by role, up to `limit`, whose roles are certain. */
  stretches(index, limit = Infinity) {
    const { fed, settled } = this.step(index);
    const [sure, read] = [Math.min(this.at(settled), limit), Math.min(this.at(fed), limit)];
    const found = { held: [[sure, read]], later: [[read, Math.min(this.output.length, limit)]] };
    for (const { role, from, to } of this.spans) if (from < sure) (found[role] ??= []).push([from, Math.min(to, sure)]);
    return found;
  }

  /** Return the parts of the format that a span contains. */
  partsOf({ role, from, to }) {
    return this.parts(role, this.output.slice(from, to));
  }

  spanAt(position) {
    return this.spans.find(({ from, to }) => from <= position && position < to);
  }

  /** Return the last events or deltas up to a step, as list items. */
  logged(index, name) {
    const items = [];
    for (let at = index; at > 0 && items.length < SHOWN; at -= 1) {
      const [from, to] = [this.at(this.step(at - 1).settled), this.at(this.step(at).settled)];
      for (const item of this.steps[at - 1][name].toReversed()) items.push(this.item(item, from, to));
    }
    return items.slice(0, SHOWN).toReversed();
  }

  item({ event, ...said }, from, to) {
    const role = SAYS[event];
    const data = role ? { parts: this.parts(role, ""), from, to } : {};
    const kind = event ? [make("mark", { className: role ?? "marker", textContent: event }), " "] : [];
    return make("li", { data }, ...kind, JSON.stringify(said, ended));
  }

  /** Return the message after a step, built from the deltas as a client does it. */
  messageAt(index) {
    if (index === this.steps.length) return this.whole;
    const message = { tool_calls: [] };
    for (const delta of this.steps.slice(0, index).flatMap((step) => step.deltas)) {
      for (const field of ["content", "reasoning_content"]) if (delta[field]) message[field] = (message[field] ?? "") + delta[field];
      for (const { index: at, ...call } of delta.tool_calls ?? []) {
        if (call.id) message.tool_calls[at] = { function: { ...call.function } };
        else message.tool_calls[at].function.arguments += call.function.arguments;
      }
    }
    return message;
  }
}

/** Convert Python's positions, which count characters, to JavaScript's positions, which count UTF-16 units. */
function positions(text) {
  const points = Array.from(text);
  if (points.length === text.length) return (position) => position;
  const starts = [0];
  for (const point of points) starts.push(starts.at(-1) + point.length);
  return (position) => starts[position];
}

/** Return the text of a JSON value. A long text is shortened to its end, where the replay currently is. */
function ended(_, value) {
  return typeof value === "string" && value.length > LONGEST ? `… ${value.length - LONGEST} characters … ${value.slice(-LONGEST)}` : value;
}

/** Return the rows of a message: reasoning, content, the last calls, failed calls, and the finish reason. */
export function messageRows(message, failed, reason) {
  const calls = message.tool_calls ?? [];
  const rows = [
    ["reasoning", "reasoning", message.reasoning_content],
    ["content", "content", message.content],
    ["name", "call", calls.length > CALLS && `… ${calls.length - CALLS} calls …`],
    ...calls.slice(-CALLS).map((call) => ["name", "call", `${call.function.name} ${call.function.arguments}`]),
    ...failed.map((text) => ["malformed", "failed call", text]),
    ["marker", "finish reason", reason],
  ];
  const given = rows.filter(([, , text]) => text);
  return given.flatMap(([className, name, text]) => [
    make("dt", {}, make("mark", { className, textContent: name })),
    make("dd", { textContent: ended("", text) }),
  ]);
}
