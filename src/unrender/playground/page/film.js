// An output in time: what was read after each chunk. A step is drawn in a few milliseconds, however long the output is.

import { make } from "./dom.js";

const WINDOW = 4000; // Characters that are shown on either side of the place that is read.
const SHOWN = 100; // Events and deltas that are listed.
const CALLS = 20; // Calls of a message that are shown.
const BETWEEN = 50; // Steps between two messages that are kept.

/** The role of what an event says, by its name. */
const SAYS = { ReasoningText: "reasoning", ContentText: "content", ToolCallStarted: "name", ArgumentsText: "argument", Malformed: "malformed" };

export class Film {
  /** `found` is the answer to "read"; `parts` tells which parts of the format a text of a role is. */
  constructor(found, output, parts) {
    Object.assign(this, found, { output, parts, at: positions(output), kept: [{ role: "assistant" }] });
    this.total = found.steps.at(-1).fed;
    for (let index = BETWEEN; index <= found.steps.length; index += BETWEEN) {
      this.kept.push(folded(this.kept.at(-1), found.steps.slice(index - BETWEEN, index)));
    }
  }

  step(index) {
    return index ? this.steps[index - 1] : { fed: 0, settled: 0 };
  }

  said(index) {
    const { fed, settled } = this.step(index);
    const chunks = this.chunk ? `chunks of ${this.chunk}` : "joined chunks";
    const why = this.coarser ? `, in ${chunks}: a film has at most 5,000 steps` : "";
    return `${fed} of ${this.total} characters, ${fed - settled} held back${why}`;
  }

  /** The output, coloured as far as its meaning is certain; of a long one, what is around that place. */
  drawn(index) {
    const { fed, settled } = this.step(index);
    const [first, last] = [Math.max(0, settled - WINDOW), Math.min(this.total, fed + WINDOW)];
    const part = (start, end) => this.output.slice(this.at(start), this.at(end));
    const drawn = [];
    const beyond = (count, where) => drawn.push(make("span", { className: "beyond", textContent: `… ${count} characters ${where} …` }));
    if (first) beyond(first, "before this");
    for (const { role, start, end } of this.spans) {
      const [from, to] = [Math.max(start, first), Math.min(end, settled)];
      if (to > from) drawn.push(this.coloured(part(from, to), role, from, to));
    }
    const [until, on] = fed - settled > 2 * WINDOW ? [settled + WINDOW, fed - WINDOW] : [fed, fed];
    if (until > settled) drawn.push(this.coloured(part(settled, until), "held", settled, until));
    if (on > until) beyond(on - until, "held back as well");
    if (fed > on) drawn.push(this.coloured(part(on, fed), "held", on, fed));
    if (last > fed) drawn.push(make("span", { className: "later", textContent: part(fed, last) }));
    if (last < this.total) beyond(this.total - last, "after this");
    return drawn;
  }

  coloured(textContent, role, from, to) {
    return make("mark", { className: role, title: role, textContent, data: { parts: this.parts(role, textContent), from, to } });
  }

  /** The last events, or deltas, up to a step, as items of a list. */
  logged(index, name) {
    const items = [];
    for (let at = index; at > 0 && items.length < SHOWN; at -= 1) {
      const [from, to] = [this.step(at - 1).settled, this.step(at).settled];
      for (const item of this.steps[at - 1][name].toReversed()) items.push(this.item(item, from, to));
    }
    return items.slice(0, SHOWN).toReversed();
  }

  item(item, from, to) {
    const data = item.event in SAYS ? { parts: this.parts(SAYS[item.event], ""), from, to } : {};
    return make("li", { textContent: JSON.stringify(item, ended), data });
  }

  /** The message after a step, as a client adds up the deltas. */
  messageAt(index) {
    if (index === this.steps.length) return this.whole;
    const near = Math.floor(index / BETWEEN);
    return folded(this.kept[near], this.steps.slice(near * BETWEEN, index));
  }
}

/** How Python's positions, which count characters, are found in a text of JavaScript, which counts UTF-16 units. */
function positions(text) {
  const points = Array.from(text);
  if (points.length === text.length) return (position) => position;
  const starts = [0];
  for (const point of points) starts.push(starts.at(-1) + point.length);
  return (position) => starts[position];
}

/** A message with what more steps say of it; what they say nothing of is the same in both. */
function folded(before, steps) {
  const message = { ...before, ...(before.tool_calls && { tool_calls: [...before.tool_calls] }) };
  for (const delta of steps.flatMap((step) => step.deltas)) {
    for (const field of ["content", "reasoning_content"]) if (delta[field]) message[field] = (message[field] ?? "") + delta[field];
    for (const { index, ...call } of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      const { function: begun, ...rest } = message.tool_calls[index] ?? {};
      message.tool_calls[index] = call.id ? call : { ...rest, function: { ...begun, arguments: begun.arguments + call.function.arguments } };
    }
  }
  return message;
}

/** What is written of a value of JSON: of long texts the end, there the film is. */
function ended(_, value) {
  return typeof value === "string" && value.length > WINDOW ? `… ${value.length - WINDOW} characters … ${value.slice(-WINDOW)}` : value;
}

/** A message as JSON, of whose many calls the last are shown. */
export function messageText(message) {
  const more = (message.tool_calls?.length ?? 0) - CALLS;
  const shown = more > 0 ? { ...message, tool_calls: [`… ${more} calls …`, ...message.tool_calls.slice(more)] } : message;
  return JSON.stringify(shown, ended, 2);
}
