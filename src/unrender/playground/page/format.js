// The picture of a format: a row of parts, the renderings that show each, the row as a file, and the lines of the template that write a part.

import { make } from "./dom.js";

const LETTER = 8; // Pixels of a letter in a picture that is a file.

/** Words by which a template's line tells that it writes a slot. */
const WRITES = { reasoning: /[.'"](reasoning|think)/, content: /[.'"]content\b/, name: /[.'"]name\b/, argument: /[.'"]arguments\b|\bvalue\b/, id: /[.'"]id\b/ };

/** The longest word of a text: layout in a marker may be another in an answer, so `", "arguments": ` is told by `"arguments":`. */
const longest = (text) => text.trim().split(/\s+/).reduce((best, word) => (word.length > best.length ? word : best));

/** The parts of one format, each once: what is the same text in the same role is the same part. */
export class Parts {
  constructor(rows) {
    this.all = [];
    for (const piece of rows.flat()) if (this.index(piece) < 0) this.all.push(piece);
  }

  index({ role, text }) {
    return this.all.findIndex((piece) => piece.role === role && piece.text.trim() === text.trim());
  }

  /** The parts that a text of the output is, as their numbers: a marker in it may be several, a slot is the first of its role. */
  of(role, text) {
    const fits = (piece) => (role === "marker" ? piece.role === role && piece.text.trim() && text.includes(longest(piece.text)) : piece.role === role);
    return this.all.flatMap((piece, index) => (fits(piece) ? [index] : [])).join(" ");
  }

  /** The parts that a line of the template writes; `}` alone may be anybody's. */
  inLine(line) {
    if (/raise_exception|!= ?['"]assistant/.test(line)) return [];
    const plain = line.replaceAll('\\"', '"').replaceAll("\\n", "\n");
    const marks = (text) => text.length > 2 && plain.includes(text);
    const writes = (piece) => (piece.role === "marker" ? marks(piece.text.trim()) : line.includes("{{") && WRITES[piece.role]?.test(line));
    return this.all.flatMap((piece, index) => (writes(piece) ? [index] : []));
  }
}

/** A format as rows of buttons; `choose` is called with the part, where it is given. */
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

/** Show the comparisons that a part rests on: those of its own field, else of the part of the format that it is in. */
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

/** The rows of parts in `place` as an SVG, in the colours in which they are shown. */
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
