// Packs the page's input into the part of the URL after `#`, which browsers don't send to servers.

const LARGEST = 8_000_000; // Maximum size of a link's contents in bytes, because a short link may decompress to gigabytes.
const MOST = 500; // Maximum number of messages, because each of them is drawn.
const LONGEST = 500_000; // Maximum length of a URL in characters. Browsers accept 2 MB, but other programs accept less.

/** Fields of a link, each with a test of its value and a description of allowed values. */
const text = [(value) => typeof value === "string", "a text"];
const object = (value) => Boolean(value) && typeof value === "object" && !Array.isArray(value);
const FIELDS = {
  ...Object.fromEntries(["source", "bos_token", "eos_token", "thinking", "tool_choice", "output", "chunk", "dialect"].map((name) => [name, text])),
  tools: [(value) => typeof value === "string" || Array.isArray(value), "a text or a list"],
  parallel: [(value) => typeof value === "boolean", "true or false"],
  messages: [(value) => Array.isArray(value) && value.length <= MOST && value.every((item) => object(item) && typeof item.role === "string"), `a list of objects with a role, at most ${MOST}`],
  recording: [(value) => value === null || (Array.isArray(value) && value.every((chunk) => typeof chunk === "string")), "a list of texts"],
  time: [(value) => value === null || (Number.isInteger(value) && value >= 0), "a whole number"],
  kept: [(value) => value === null || (object(value) && (typeof value.source === "string" || object(value.format))), "a template or a format"],
  keptName: text,
  format: [(value) => value === null || object(value), "a format"],
};

/** Return the hash that contains `state`, or an empty string if it would be too long. */
export async function packed(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length > (LONGEST * 3) / 4) return "";
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `#v1=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Return the state in a hash, or null if the hash isn't ours. Throws an error with the reason if the link is damaged. */
export async function unpacked(hash) {
  if (!hash.startsWith("#v1=")) return null;
  const state = await inflated(hash.slice(4)).catch(() => {
    throw new Error("it is damaged, cut off or too large: ask for it again");
  });
  if (!object(state)) throw new Error("it holds no page");
  for (const [name, [good, wanted]] of Object.entries(FIELDS)) {
    if (name in state && !good(state[name])) throw new Error(`${name}: expected ${wanted}`);
  }
  return state;
}

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const parts = [];
  let size = 0;
  for await (const part of stream) {
    size += part.length;
    if (size > LARGEST) throw new Error(`expected at most ${LARGEST} bytes`);
    parts.push(part);
  }
  return JSON.parse(await new Blob(parts).text());
}
