// The page: what is entered goes to `ask`, what comes back is drawn. All text from outside is set as text, never as HTML.

import { alone, ask, offered } from "./backend.js";

const $ = (id) => document.getElementById(id);
const ROLES = ["reasoning", "content", "marker", "name", "id", "argument", "malformed", "held"];
const TYPED = ["source", "bos_token", "eos_token", "tools", "thinking", "tool_choice", "output", "chunk"];
const SHOWN = 100; // Events and deltas that are listed.
const PAUSE = 250; // Milliseconds without typing before a question is asked.

let messages = [{ role: "user", content: "Hello" }];
let film = null; // The answer to the last "read", with the output that was read.
let recording = null; // The chunks of a recording, instead of chunks of one size.
let kept = null; // The template, or the format, to compare with.
let playing = null;

// ---- making elements ------------------------------------------------------------------------------------------------

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function fill(element, ...children) {
  element.replaceChildren(...children);
}

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

/** Whether an answer can be used; what is wrong with it is said, and shown in `place`. */
function usable(answer, place) {
  if (!answer.error) return true;
  say(answer.error, true);
  if (place) fill(place, make("p", { className: "bad", textContent: answer.error }));
  return false;
}

// ---- what is entered ------------------------------------------------------------------------------------------------

function template() {
  return { source: $("source").value, bos_token: $("bos_token").value, eos_token: $("eos_token").value };
}

/** The question that most answers depend on; null, and a word, where the tools are not JSON. */
function asked() {
  const written = $("tools").value.trim();
  let tools = [];
  try {
    if (written) tools = JSON.parse(written);
  } catch (error) {
    say(`Tools: ${error.message}`, true);
    return null;
  }
  const choice = $("tool_choice").value;
  return {
    ...template(),
    messages,
    tools,
    thinking: $("thinking").value,
    tool_choice: choice || null,
    parallel_tool_calls: $("parallel").checked,
  };
}

function everything() {
  const entered = Object.fromEntries(TYPED.map((id) => [id, $(id).value]));
  return { ...entered, parallel: $("parallel").checked, messages };
}

function enter(state) {
  for (const id of TYPED) if (typeof state[id] === "string") $(id).value = state[id];
  if (Array.isArray(state.tools)) $("tools").value = JSON.stringify(state.tools, null, 1);
  $("parallel").checked = state.parallel ?? true;
  if (Array.isArray(state.messages)) messages = state.messages;
  recording = null;
  showChunk();
  drawMessages();
  refreshAll();
}

function later(action) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, PAUSE);
  };
}

/** An action that asks: while an older question is under way its answer is dropped when a newer one was asked. */
function latest(action) {
  let count = 0;
  return async (...given) => {
    count += 1;
    const mine = count;
    await action(() => mine === count, ...given);
  };
}

// ---- the format -----------------------------------------------------------------------------------------------------

const drawFormat = latest(async (current) => {
  say("Reading the template …");
  const found = await ask("format", template());
  if (!current()) return;
  fill($("evidence"));
  fill($("proof"));
  if (!usable(found, $("pictures"))) return;
  say(`Derived from ${found.renderings} renderings.`);
  fill($("pictures"), ...found.pictures.map((row) => picture(row, found.evidence)));
  const doubts = [...found.warnings, ...found.diagnostics];
  fill($("diagnostics"), ...list([...new Set(doubts)], "bad"));
  const rows = found.markers.map(([path, value]) => make("tr", {}, header(path), make("td", { textContent: quoted(value) })));
  fill($("markers").querySelector("table"), ...rows);
});

function header(text) {
  return make("th", { scope: "row", textContent: text });
}

function quoted(text) {
  return text.replace(/\n/g, "↵\n").replace(/\t/g, "⇥");
}

function list(texts, className = "") {
  return texts.length ? [make("ul", { className }, ...texts.map((text) => make("li", { textContent: text })))] : [];
}

function picture(row, evidence) {
  const pieces = row.map((piece) => {
    const slot = !["marker"].includes(piece.role);
    const button = make("button", {
      type: "button",
      className: `piece ${piece.role}${slot ? " slot" : ""}`,
      textContent: slot ? piece.text : quoted(piece.text),
      title: `${piece.role}: ${piece.field}`,
    });
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => choose(button, piece, evidence));
    return make("li", {}, button);
  });
  return make("ul", { className: "picture" }, ...pieces);
}

/** Show the comparisons that a part rests on: those of its own field, else of the part of the format that it is in. */
function choose(button, piece, evidence) {
  for (const other of $("pictures").querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
  let path = piece.field;
  let found = [];
  while (path && !found.length) {
    found = evidence.filter((item) => item.part === path || item.part.startsWith(`${path}.`));
    path = path.split(".").slice(0, -1).join(".");
  }
  const title = make("h3", { textContent: piece.field });
  const none = make("p", { className: "hint", textContent: "No comparison shows this part alone." });
  fill($("evidence"), title, ...(found.length ? found.map(comparison) : [none]));
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

async function prove() {
  const button = $("prove");
  button.disabled = true;
  fill($("proof"), make("p", { className: "hint", textContent: "Rendering and reading back …" }));
  const report = await ask("proof", template());
  button.disabled = false;
  if (!usable(report, $("proof"))) return;
  const classes = { proved: "good", refuted: "bad" };
  const rows = report.findings.map((finding) => {
    const count = finding.total ? ` (${finding.held} of ${finding.total})` : "";
    const example = finding.counterexample;
    const why = example ? `${example.answer}\nexpected ${example.expected}\nfound ${example.found}` : finding.reason;
    const verdict = make("td", { className: classes[finding.verdict] ?? "hint", textContent: finding.verdict + count });
    return make("tr", {}, header(finding.capability), verdict, make("td", { textContent: why }));
  });
  fill($("proof"), make("table", {}, ...rows));
}

// ---- the conversation and its prompt --------------------------------------------------------------------------------

function drawMessages() {
  const rows = messages.map((message, index) => {
    const role = make("select", { value: message.role });
    role.setAttribute("aria-label", `Role of message ${index + 1}`);
    const roles = ["system", "user", "assistant", "tool", "developer"];
    if (!roles.includes(message.role)) roles.push(String(message.role));
    fill(role, ...roles.map((name) => make("option", { textContent: name, selected: name === message.role })));
    role.addEventListener("change", () => change(index, { ...message, role: role.value }));
    const plain = isPlain(message);
    const text = make("textarea", { rows: 2, value: plain ? message.content : JSON.stringify(message), spellcheck: false });
    text.setAttribute("aria-label", plain ? `Text of message ${index + 1}` : `Message ${index + 1}, as JSON`);
    text.addEventListener("input", () => retype(index, text));
    const remove = make("button", { type: "button", textContent: "Remove" });
    remove.setAttribute("aria-label", `Remove message ${index + 1}`);
    remove.addEventListener("click", () => {
      messages = messages.filter((_, at) => at !== index);
      drawMessages();
      refreshTurn();
    });
    return make("li", {}, role, text, remove);
  });
  fill($("messages"), ...rows);
}

function isPlain(message) {
  return typeof message.content === "string" && Object.keys(message).length === 2;
}

/** What is typed is the message's text, or the whole message where it is a JSON object with a role. */
function retype(index, text) {
  const { role } = messages[index];
  let message = { role, content: text.value };
  if (text.value.startsWith("{")) {
    try {
      const read = JSON.parse(text.value);
      if (read && read.role) message = read;
    } catch {
      // It is text until it is JSON.
    }
  }
  messages = messages.with(index, message);
  refreshTurnSoon();
}

function change(index, message) {
  messages = messages.with(index, message);
  drawMessages();
  refreshTurn();
}

const drawPrompt = latest(async (current) => {
  const question = asked();
  if (!question) return;
  const turn = await ask("prompt", question);
  if (!current() || !usable(turn, $("prompt"))) return;
  fill($("prompt"), ...promptParts(turn));
  const triggers = turn.triggers.map((trigger) => trigger.value ?? JSON.stringify(trigger));
  const rows = [
    ["stop", turn.stop.map(quoted).join("  ")],
    ["preserved tokens", turn.preserved_tokens.join("  ")],
    ["grammar triggers", triggers.join("  ")],
    ["thinking", { true: "on", false: "off" }[turn.thinking] ?? "no switch"],
    ["tools", turn.injected ? "described in the system message by unrender, as the template ignores them" : "rendered by the template"],
    ["mask", turn.mask],
    ["warnings", turn.warnings.join("\n")],
  ];
  const shown = rows.filter(([, value]) => value);
  fill($("engine"), ...shown.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));
});

function promptParts(turn) {
  const points = Array.from(turn.prompt); // Python counts characters, JavaScript UTF-16 units.
  const total = points.length;
  const begun = turn.begun && turn.prompt.endsWith(turn.begun) ? total - Array.from(turn.begun).length : total;
  const history = Math.min(turn.history ?? begun, begun);
  const cuts = [...turn.written.map(([start, end]) => [start, end, "written"]), [history, begun, "generation"], [begun, total, "begun"]];
  const parts = [];
  let at = 0;
  for (const [start, end, name] of cuts) {
    if (start > at) parts.push(points.slice(at, start).join(""));
    if (end > start) parts.push(make("mark", { className: name, textContent: points.slice(start, end).join("") }));
    at = Math.max(at, end);
  }
  return parts;
}

// ---- the output, in time --------------------------------------------------------------------------------------------

const read = latest(async (current) => {
  const question = asked();
  if (!question) return;
  const output = $("output").value;
  const cut = recording ? { chunks: recording } : { output, chunk: Number($("chunk").value) };
  const found = await ask("read", { ...question, ...cut });
  if (!current() || !usable(found, $("film"))) return;
  film = { ...found, output, at: positions(output) };
  $("time").max = String(found.steps.length);
  $("time").value = String(found.steps.length);
  drawTime();
  await explain(current, question, output);
});

/** How Python's positions, which count characters, are found in a text of JavaScript, which counts UTF-16 units. */
function positions(text) {
  const points = Array.from(text);
  if (points.length === text.length) return (position) => position;
  const starts = [0];
  for (const point of points) starts.push(starts.at(-1) + point.length);
  return (position) => starts[position];
}

async function explain(current, question, output) {
  const found = await ask("explanation", { ...question, output });
  if (!current()) return;
  if (found.error) {
    fill($("explanation"), make("p", { className: "hint", textContent: found.error }));
    return;
  }
  const stops = found.stops.map((stop) => `At character ${stop.position}: expected ${stop.expected}, found ${stop.found ? JSON.stringify(stop.found) : "the end of the output"}`);
  const hints = found.hints.map((hint) => `${hint.text}. ${hint.fix}`);
  const nearest = found.nearest ? [`Another syntax would have read it: ${found.nearest.name}`] : [];
  const verdict = make("p", { className: found.clean ? "good" : "bad", textContent: found.clean ? "Everything was read." : "Something is wrong:" });
  fill($("explanation"), verdict, ...list([...stops, ...hints, ...nearest]), ...list(found.tolerances));
}

function drawTime() {
  if (!film) return;
  const at = Number($("time").value);
  const step = at ? film.steps[at - 1] : { fed: 0, settled: 0 };
  $("time-shown").textContent = `${step.fed} of ${film.steps.at(-1).fed} characters, ${step.fed - step.settled} held back`;
  fill($("film"), ...filmParts(step));
  const seen = film.steps.slice(0, at);
  drawLog($("events"), seen, "events");
  drawLog($("deltas"), seen, "deltas");
  $("message").textContent = JSON.stringify(at === film.steps.length ? film.message : folded(seen), null, 2);
}

function filmParts(step) {
  const part = (start, end = film.steps.at(-1).fed) => film.output.slice(film.at(start), film.at(end));
  const parts = [];
  for (const span of film.spans) {
    const end = Math.min(span.end, step.settled);
    if (end > span.start) parts.push(coloured(part(span.start, end), span.role));
  }
  if (step.fed > step.settled) parts.push(coloured(part(step.settled, step.fed), "held"));
  const unseen = part(step.fed);
  if (unseen) parts.push(make("span", { className: "later", textContent: unseen }));
  return parts;
}

function coloured(text, role) {
  return make("mark", { className: role, title: role, textContent: text });
}

function drawLog(place, steps, name) {
  const items = [];
  for (let index = steps.length - 1; index >= 0 && items.length < SHOWN; index -= 1) items.push(...steps[index][name].toReversed());
  fill(place, ...items.slice(0, SHOWN).toReversed().map((item) => make("li", { textContent: JSON.stringify(item) })));
  place.scrollTop = place.scrollHeight;
}

/** The message that the deltas of some steps add up to, as a client makes it. */
function folded(steps) {
  const message = { role: "assistant" };
  for (const delta of steps.flatMap((step) => step.deltas)) {
    for (const field of ["content", "reasoning_content"]) if (delta[field]) message[field] = (message[field] ?? "") + delta[field];
    for (const { index, ...call } of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      if (call.id) message.tool_calls[index] = structuredClone(call);
      else message.tool_calls[index].function.arguments += call.function.arguments;
    }
  }
  return message;
}

function play() {
  if (playing) {
    stop();
    return;
  }
  const time = $("time");
  if (time.value === time.max) time.value = "0";
  const stride = Math.max(1, Math.ceil(Number(time.max) / 300));
  $("play").setAttribute("aria-pressed", "true");
  playing = setInterval(() => {
    time.value = String(Number(time.value) + stride);
    drawTime();
    if (time.value === time.max) stop();
  }, 40);
}

function stop() {
  clearInterval(playing);
  playing = null;
  $("play").setAttribute("aria-pressed", "false");
}

async function sample() {
  const question = asked();
  if (!question) return;
  const found = await ask("sample", { ...question, seed: Math.floor(Math.random() * 1e9) });
  if (!usable(found)) return;
  recording = null;
  $("output").value = found.output;
  say("A random answer that the format allows.");
  await read();
}

/** Take a recorded stream: one JSON text a line, or lines of OpenAI chunks with their text. */
async function openRecording(file) {
  const lines = (await file.text()).split("\n").filter((line) => line.trim());
  try {
    const chunks = lines.map((line) => textOf(JSON.parse(line.replace(/^data: /, ""))));
    recording = chunks.flat().filter(Boolean);
  } catch (error) {
    say(`${file.name}: expected a JSON text on each line: ${error.message}`, true);
    return;
  }
  $("output").value = recording.join("");
  await read();
}

function textOf(value) {
  if (typeof value === "string" || Array.isArray(value)) return value;
  const choice = value.choices?.[0] ?? value;
  return choice.text ?? choice.delta?.content ?? choice.content ?? "";
}

// ---- grammars and comparing -----------------------------------------------------------------------------------------

const drawGrammar = latest(async (current) => {
  const question = asked();
  if (!question) return;
  const found = await ask("grammar", { ...question, dialect: $("dialect").value });
  if (!current()) return;
  fill($("not-enforced"));
  if (!usable(found, $("grammar"))) return;
  $("grammar").textContent = found.grammar;
  fill($("not-enforced"), ...found.warnings.map((text) => make("li", { textContent: text })));
});

const compare = latest(async (current) => {
  if (!kept) return;
  const found = await ask("compare", { before: kept, after: template() });
  if (!current() || !usable(found, $("differences"))) return;
  const text = (value) => (value === null ? "—" : typeof value === "string" ? quoted(value) : JSON.stringify(value));
  const rows = found.differences.map((item) => make("tr", {}, header(item.path), make("td", { textContent: text(item.before) }), make("td", { textContent: text(item.after) })));
  const same = make("p", { className: "good", textContent: "Both are the same format." });
  const head = make("tr", {}, ...["field", "kept", "this"].map((name) => make("th", { scope: "col", textContent: name })));
  fill($("differences"), rows.length ? make("table", {}, head, ...rows) : same);
});

function keep() {
  kept = template();
  $("kept").textContent = `kept: ${kept.source.length} characters`;
  compare();
}

/** Take a format to compare with, as `unrender format show` writes it. */
async function keepFormat(file) {
  try {
    kept = { format: JSON.parse(await file.text()) };
  } catch (error) {
    say(`${file.name}: expected a format as JSON: ${error.message}`, true);
    return;
  }
  $("kept").textContent = `kept: ${file.name}`;
  await compare();
}

// ---- links ----------------------------------------------------------------------------------------------------------

async function packed(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

async function share() {
  location.hash = `v1=${await packed(everything())}`;
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied. It holds everything on this page.");
  } catch {
    say("The address now holds everything on this page.");
  }
}

async function fromLink() {
  const match = /^#v1=([\w-]+)$/.exec(location.hash);
  if (!match) return null;
  try {
    return await unpacked(match[1]);
  } catch (error) {
    say(`The link cannot be read: ${error.message}`, true);
    return null;
  }
}

// ---- the whole page -------------------------------------------------------------------------------------------------

function refreshTurn() {
  drawPrompt();
  read();
  drawGrammar();
}

function refreshAll() {
  drawFormat();
  compare();
  refreshTurn();
}

const refreshTurnSoon = later(refreshTurn);
const refreshAllSoon = later(refreshAll);
const readSoon = later(read);

function showChunk() {
  $("chunk-shown").textContent = recording ? "as recorded" : $("chunk").value;
}

function listen(ids, event, action) {
  for (const id of ids) $(id).addEventListener(event, action);
}

async function start() {
  fill($("roles"), ...ROLES.map((role) => make("mark", { className: role, textContent: role === "held" ? "held back" : role })));
  listen(["source", "bos_token", "eos_token"], "input", refreshAllSoon);
  listen(["tools"], "input", refreshTurnSoon);
  listen(["thinking", "tool_choice", "parallel"], "change", refreshTurn);
  listen(["output", "chunk"], "input", () => {
    recording = null;
    showChunk();
    readSoon();
  });
  listen(["time"], "input", drawTime);
  listen(["dialect"], "change", drawGrammar);
  for (const [id, action] of Object.entries({ prove, sample, share, keep, play })) $(id).addEventListener("click", action);
  $("add").addEventListener("click", () => {
    messages = [...messages, { role: messages.at(-1)?.role === "user" ? "assistant" : "user", content: "" }];
    drawMessages();
    refreshTurn();
    $("messages").querySelector("li:last-child textarea").focus();
  });
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    if (file) openTemplate(file.name, await file.text());
  });
  $("recording").addEventListener("change", async () => {
    const [file] = $("recording").files;
    if (file) await openRecording(file);
    showChunk();
  });
  $("kept-format").addEventListener("change", async () => {
    const [file] = $("kept-format").files;
    if (file) await keepFormat(file);
  });
  if (alone) say("Loading Python …");
  const examples = await (await fetch("examples.json")).json();
  const all = [...(await offered()), ...examples];
  fill($("example"), ...all.map((item, index) => make("option", { value: String(index), textContent: item.name })));
  $("example").addEventListener("change", () => enter({ ...examples[0], output: "", ...all[Number($("example").value)] }));
  enter((await fromLink()) ?? { ...examples[0], output: "", ...all[0] });
}

/** Take a template file: Jinja itself, or a tokenizer's configuration that holds it and its tokens. */
function openTemplate(name, text) {
  let entered = { source: text };
  if (name.endsWith(".json")) {
    try {
      const found = JSON.parse(text);
      const token = (value) => (typeof value === "string" ? value : (value?.content ?? ""));
      const source = Array.isArray(found.chat_template) ? found.chat_template[0].template : found.chat_template;
      if (typeof source !== "string") throw new TypeError("no chat_template in it");
      entered = { source, bos_token: token(found.bos_token), eos_token: token(found.eos_token) };
    } catch (error) {
      say(`${name}: ${error.message}`, true);
      return;
    }
  }
  enter({ ...everything(), ...entered });
}

start();
