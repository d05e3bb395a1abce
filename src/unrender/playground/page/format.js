// Draws a format as a row of parts. Also shows the evidence for a part, and finds the lines of the template that write it.

import { make } from "./dom.js";

const LETTER = 8; // Width of a letter in an SVG file, in pixels.

/** Patterns for lines of a template that write a slot. */
const WRITES = { reasoning: /[.'"](reasoning|think)/, content: /[.'"]content\b/, name: /[.'"]name\b/, argument: /[.'"]arguments\b|\bvalue\b/, id: /[.'"]id\b/ };

/** Return the longest word of a text. Whitespace in a marker may vary, so `", "arguments": ` is identified by `"arguments":`. */
const longest = (text) => text.trim().split(/\s+/).reduce((best, word) => (word.length > best.length ? word : best));

/** The parts of a format, without duplicates. Parts with equal text and role are the same part. */
export class Parts {
  constructor(rows) {
    this.all = [];
    for (const piece of rows.flat()) if (this.index(piece) < 0) this.all.push(piece);
  }

  index({ role, text }) {
    return this.all.findIndex((piece) => piece.role === role && piece.text.trim() === text.trim());
  }

  /** Return the numbers of the parts that match a text of the output. A marker may match several parts, and a slot matches the first part with its role. */
  of(role, text) {
    const fits = (piece) => (role === "marker" ? piece.role === role && piece.text.trim() && text.includes(longest(piece.text)) : piece.role === role);
    return this.all.flatMap((piece, index) => (fits(piece) ? [index] : [])).join(" ");
  }

  /** Return the numbers of the parts that a line of the template writes. Very short markers such as `}` are ignored, because they're ambiguous. */
  inLine(line) {
    if (/raise_exception|!= ?['"]assistant/.test(line)) return [];
    const plain = line.replaceAll('\\"', '"').replaceAll("\\n", "\n");
    const written = line.replace(/\bif\b[^}%]*(?=[}%])/g, ""); // A condition writes nothing, e.g. `{{ "\n" if message.content }}`.
    const marks = (text) => text.length > 2 && plain.includes(text);
    const writes = (piece) => (piece.role === "marker" ? marks(piece.text.trim()) : line.includes("{{") && WRITES[piece.role]?.test(written));
    return this.all.flatMap((piece, index) => (writes(piece) ? [index] : []));
  }
}

/** Return a format as rows of parts. If `choose` is given, each part is a button that calls it. */
export function picture(row, parts, choose = null) {
  const pieces = row.map((piece) => {
    const slot = piece.role !== "marker";
    const properties = {
      className: `piece ${piece.role}${slot ? " slot" : ""}`,
      textContent: piece.text.replaceAll("\n", "↵").replaceAll("\t", "⇥"),
      title: `${piece.role}: ${piece.field}`,
      data: parts ? { parts: String(parts.index(piece)) } : {},
    };
    if (!choose) return make("li", {}, make("span", properties));
    const button = make("button", { type: "button", ariaHasPopup: "dialog", ...properties });
    button.addEventListener("click", () => choose(piece));
    return make("li", {}, button);
  });
  return make("ul", { className: "picture" }, ...pieces);
}

/** Return the comparisons that show a part: those for its own field or, if there are none, for the enclosing field. */
export function evidenceOf(piece, evidence) {
  let path = piece.field;
  let found = [];
  while (path && !found.length) {
    found = evidence.filter((item) => item.part === path || item.part.startsWith(`${path}.`));
    path = path.split(".").slice(0, -1).join(".");
  }
  const none = make("p", { className: "hint", textContent: "No comparison shows this part alone." });
  return found.length ? found.map(comparison) : [none];
}

function comparison(item) {
  const { prefix, suffix } = item.split;
  const side = (shown, only) =>
    make("figure", {}, make("figcaption", { className: "hint", textContent: shown.what }), framed(prefix, only, suffix, shown.what));
  const rule = item.rule ? ` Decided by: ${item.rule}.` : "";
  const head = make("p", { className: "hint", textContent: `${item.name ? `${item.name}: ` : ""}${item.finding}${rule}` });
  const sides = make("div", { className: "sides" }, side(item.left, item.split.left), side(item.right, item.split.right));
  return make("div", {}, head, sides);
}

function framed(prefix, only, suffix, name) {
  const block = make("pre", { tabIndex: 0 }, prefix, make("mark", { className: "only", textContent: only }), suffix);
  block.setAttribute("aria-label", name);
  return block;
}

/** Return the rows of parts in `place` as an SVG, with the colours of the page. */
export function drawing(place) {
  const escaped = (text) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
  const shapes = [];
  let width = 0;
  const rows = [...place.querySelectorAll(".picture")];
  for (const [line, row] of rows.entries()) {
    let x = 8;
    for (const piece of row.querySelectorAll(".piece")) {
      const { backgroundColor, borderBottomColor, color, fontStyle } = getComputedStyle(piece);
      const text = piece.textContent;
      const wide = Array.from(text).length * LETTER + 12;
      const y = 8 + line * 36;
      shapes.push(
        `<rect x="${x}" y="${y}" width="${wide}" height="24" rx="4" fill="${backgroundColor}"/>`,
        `<rect x="${x}" y="${y + 24}" width="${wide}" height="3" fill="${borderBottomColor}"/>`,
        `<text x="${x + 6}" y="${y + 17}" fill="${color}" font-style="${fontStyle}" textLength="${wide - 12}" xml:space="preserve">${escaped(text)}</text>`,
      );
      x += wide + 4;
      width = Math.max(width, x);
    }
  }
  const size = `width="${width + 4}" height="${8 + rows.length * 36}"`;
  const ground = `<rect ${size} fill="${getComputedStyle(document.body).backgroundColor}"/>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="monospace" font-size="13">${ground}${shapes.join("")}</svg>\n`;
}
