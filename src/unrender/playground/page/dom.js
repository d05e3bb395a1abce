// Creates and fills elements of the page. Untrusted text is set as text, never as HTML.

export const $ = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const { data, ...own } = properties;
  const element = Object.assign(document.createElement(tag), own);
  Object.assign(element.dataset, data);
  element.append(...children);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children);
}

export function header(text) {
  return make("th", { scope: "row", textContent: text });
}

export function quoted(text) {
  return text.replace(/\n/g, "↵\n").replace(/\t/g, "⇥");
}

export function list(texts, className = "") {
  return texts.length ? [make("ul", { className }, ...texts.map((text) => make("li", { textContent: text })))] : [];
}

export function listen(ids, event, action) {
  for (const id of ids) $(id).addEventListener(event, action);
}

/** Download a file that the page has created. */
export function download(name, type, text) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
