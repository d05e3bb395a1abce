// An editor: a text area over a copy of its text, in which lines have numbers and ranges have colours.

import { fill, make } from "./dom.js";

const LINES = 5000; // A longer text is a single element without line numbers.
const COLOURED = 100_000; // Maximum length of a template with syntax colouring, in characters.

export class Editor {
  /** `copied` is called after each change of the text. */
  constructor(area, copied) {
    Object.assign(this, { area, copied, back: area.previousElementSibling });
    area.addEventListener("input", () => this.copy());
  }

  copy() {
    const texts = this.area.value.split("\n");
    this.texts = texts.length > LINES ? [this.area.value] : texts;
    this.starts = [0];
    for (const text of this.texts) this.starts.push(this.starts.at(-1) + text.length + 1);
    this.lines = this.texts.map((textContent) => make("div", { textContent, className: texts.length > LINES ? "whole" : "" }));
    fill(this.back, ...this.lines);
    this.copied?.();
  }

  /** Return the index of the line at a position. */
  line(position) {
    let [low, high] = [0, this.texts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.starts[middle] <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  place(position) {
    const index = this.line(position);
    const node = this.lines[index].firstChild;
    return node?.nodeType === Node.TEXT_NODE ? [node, Math.min(position - this.starts[index], node.length)] : [this.lines[index], 0];
  }

  /** Apply the style `name` to ranges, given as pairs of positions, and remove it from all others. */
  paint(name, stretches, priority = 0) {
    if (!CSS.highlights) return;
    const highlight = Object.assign(new Highlight(), { priority });
    for (const [from, to] of stretches) {
      if (from >= to) continue;
      const [[startContainer, startOffset], [endContainer, endOffset]] = [this.place(from), this.place(to)];
      highlight.add(new StaticRange({ startContainer, startOffset, endContainer, endOffset }));
    }
    CSS.highlights.set(name, highlight);
  }

  /** Return the position in the text at a point of the screen, or null. */
  below(x, y) {
    const found = document.caretPositionFromPoint?.(x, y);
    return found && (found.offsetNode === this.area || this.area.contains(found.offsetNode)) ? found.offset : null;
  }
}

/** Return ranges of a template by Jinja syntax. The time is linear in the length of the template. */
export function jinja(source) {
  const found = { statement: [], string: [], comment: [] };
  if (source.length > COLOURED) return found;
  const inner = /"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|%\}|\}\}/gs;
  let at = source.search(/\{[#%{]/);
  while (at >= 0) {
    let end = source.length;
    if (source[at + 1] === "#") {
      const close = source.indexOf("#}", at);
      if (close >= 0) end = close + 2;
      found.comment.push([at, end]);
    } else {
      const close = source[at + 1] === "%" ? "%}" : "}}";
      inner.lastIndex = at + 2;
      for (let token = inner.exec(source); token; token = inner.exec(source)) {
        if (token[0] === close) {
          end = inner.lastIndex;
          break;
        }
        if (token[0].length > 2 || "\"'".includes(token[0][0])) found.string.push([token.index, inner.lastIndex]);
      }
      found.statement.push([at, end]);
    }
    const next = /\{[#%{]/g;
    next.lastIndex = end;
    at = next.exec(source)?.index ?? -1;
  }
  return found;
}
