// Links: all that is entered on the page, packed into the part of an address that browsers send nowhere.

const LARGEST = 8_000_000; // Bytes of what a link holds: a short one may hold a billion letters.
const MOST = 500; // Messages: each is drawn.
const LONGEST = 500_000; // Characters of an address; browsers take 2 MB, and who is sent a link pastes it somewhere.

/** What a link may hold, with the test that its value must pass, and what is said where it does not. */
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

/** Return the part of an address that holds `state`; empty where it would be too long. */
export async function packed(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length > (LONGEST * 3) / 4) return "";
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return `#v1=${btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

/** Return what a part of an address holds; null where it is not a link of ours. Throws an error that says what is wrong. */
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
