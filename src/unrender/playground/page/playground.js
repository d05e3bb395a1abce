// The page: sends the user's input to `ask`, and draws the responses. If a request fails, its place is cleared, and the error is shown once.

import { alone, ask, offered, ready, stored } from "./backend.js";
import { $, download, fill, header, list, listen, make, quoted } from "./dom.js";
import { Editor, jinja } from "./editor.js";
import { Film, messageRows } from "./film.js";
import { Parts, drawing, evidenceOf, picture } from "./format.js";
import { packed, unpacked } from "./link.js";

const TYPED = ["source", "bos_token", "eos_token", "tools", "thinking", "tool_choice", "output", "chunk", "dialect"];
const BLANK = { ...Object.fromEntries(TYPED.map((id) => [id, ""])), chunk: "4", dialect: "gbnf", parallel: true, recording: null, kept: null, keptName: "", format: null, time: null };
const PAUSE = 250; // Milliseconds without typing before a request is sent.
const ROLES = ["reasoning", "content", "marker", "layout", "name", "id", "argument", "malformed", "held", "later"];
const NARROW = matchMedia("(max-width: 900px)");

let messages = [{ role: "user", content: "Hello" }];
let shown = null; // The last response to "format".
let parts = null; // Its parts.
let film = null; // The last response to "read", with its output.
let report = null; // The findings of all checks.
let recording = null; // The chunks of a recorded stream, which replace chunks of one size.
let made = true; // True if the page generated the output. Another template then replaces it.
let legible = true; // True if the next sample should be a readable answer with all parts instead of a random one.
let good = ""; // The last success message.
let loading = ""; // The message about loading, if any.
let kept = null; // The template, or the format, to compare with.
let format = null; // The example's own format, until its template is edited.
let time = null; // The position of the slider in a link.
let playing = null;
let templates = []; // The examples.
let attack = ""; // Text that forges a conversation.

const source = new Editor($("source"), drawTemplate);
const output = new Editor($("output"), drawStretches);

// ---- requests and errors ------------------------------------------------------------------------------------

/** Requests by name: a function for the fields, a function that draws the response in `place`, and a function that clears the rest if the request fails. */
const PANELS = {
  format: { place: "pictures", asks: template, draws: drawFormat, clears: clearFormat },
  prompt: { place: "prompt", asks: asked, draws: drawPrompt, clears: () => fill($("engine")) },
  sample: { asks: () => ({ ...asked(), ...(legible ? { legible } : { seed: Math.floor(Math.random() * 1e9) }) }), draws: drawSample, clears: clearSample },
  read: { place: "explanation", asks: () => ({ ...asked(), ...cut() }), draws: drawFilm, clears: clearFilm },
  explanation: { place: "explanation", asks: () => ({ ...asked(), output: $("output").value }), draws: drawExplanation, clears: () => fill($("verdict")) },
  grammar: { place: "grammar", asks: () => ({ ...asked(), dialect: $("dialect").value }), draws: drawGrammar, clears: () => fill($("not-enforced")) },
  compare: { place: "differences", asks: () => ({ before: kept, after: template() }), draws: drawDifferences, clears: () => {} },
};
const problems = new Map(); // Error messages by request.
const counts = {};

/** Send a request and draw its response, unless the same request was sent again or `forget` was called. Return whether the response was drawn. */
async function run(name) {
  const mine = forget(name);
  const { place, asks, draws, clears } = PANELS[name];
  place && around(place).setAttribute("aria-busy", "true");
  let answer;
  try {
    answer = $("source").value.trim() ? await ask(name, asks()) : { error: "" };
  } catch (error) {
    answer = { error: error.message };
  }
  if (mine !== counts[name]) return false;
  place && around(place).removeAttribute("aria-busy");
  const failed = "error" in answer;
  if (failed) {
    if (place) fill($(place));
    clears();
  }
  problem(name, answer.error);
  if (!failed) draws(answer);
  return !failed;
}

/** Ignore the response to a pending request. */
function forget(name) {
  const { place } = PANELS[name] ?? {};
  if (place) around(place).removeAttribute("aria-busy");
  counts[name] = (counts[name] ?? 0) + 1;
  return counts[name];
}

function around(place) {
  return $(place).closest("[role=tabpanel], section, dialog");
}

/** Show a problem, or that there is none any more. A template's problem is shown in place of its format, all others in the header. */
function problem(name, text = "") {
  problems.delete(name);
  if (text) problems.set(name, text);
  if (text && name === "format") fill($("pictures"), make("span", { className: "bad", role: "alert", textContent: text }));
  drawStatus();
}

/** Show a success message after any errors. */
function say(text) {
  good = text;
  drawStatus();
}

function drawStatus() {
  $("status").classList.toggle("bad", problems.size > 0);
  const others = [...new Set(problems.values())].filter((text) => text !== problems.get("format"));
  $("status").textContent = [...others, good || loading].filter(Boolean).join(" · ");
}

// ---- input ------------------------------------------------------------------------------------------------

function template() {
  const written = { source: $("source").value, bos_token: $("bos_token").value, eos_token: $("eos_token").value };
  return format ? { ...written, format } : written;
}

/** Return the fields that most requests share. Throws an error if the tools aren't JSON. */
function asked() {
  const written = $("tools").value.trim();
  let tools = [];
  try {
    if (written) tools = JSON.parse(written);
  } catch (error) {
    throw new Error(`Tools: ${error.message}`);
  }
  const [thinking, choice] = [$("thinking").value, $("tool_choice").value];
  return { ...template(), messages, tools, thinking, tool_choice: choice || null, parallel_tool_calls: $("parallel").checked };
}

/** Return the output in chunks of one size, or in recorded chunks. */
function cut() {
  return recording ? { chunks: recording } : { output: $("output").value, chunk: Math.max(1, Number($("chunk").value) || 1) };
}

function everything() {
  const entered = Object.fromEntries(TYPED.map((id) => [id, $(id).value]));
  const end = $("time").value === $("time").max;
  return { ...entered, parallel: $("parallel").checked, messages, recording, kept, format, keptName: $("kept").textContent, time: end ? null : Number($("time").value) };
}

/** Show a state of the page, from an example or a link. */
function enter(given) {
  const state = { ...BLANK, ...given };
  for (const id of TYPED) $(id).value = typeof state[id] === "string" ? state[id] : JSON.stringify(state[id], null, 1);
  if (!$("dialect").value) $("dialect").value = BLANK.dialect;
  ({ recording, kept, format, time } = state);
  $("parallel").checked = state.parallel;
  $("kept").textContent = state.keptName;
  if (state.messages) messages = state.messages;
  drawMessages();
  source.copy();
  output.copy();
  refreshAll(made && !state.output, true);
}

function later(action, pause = PAUSE) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, pause);
  };
}

// ---- the template and its format ------------------------------------------------------------------------------------

/** Colour the template's syntax. Lines that write parts of the format get bars in the parts' colours. */
function drawTemplate() {
  const found = jinja(source.area.value);
  for (const [name, stretches] of Object.entries(found)) source.paint(name, stretches, name === "string" ? 1 : 0);
  if (!parts || !found.statement.length) return;
  for (const [index, line] of source.lines.entries()) {
    const own = parts.inLine(source.texts[index]);
    const roles = [...new Set(own.map((part) => parts.all[part].role))];
    const telling = roles.length > 1 ? roles.filter((role) => role !== "marker") : roles;
    line.querySelector(".bars")?.remove();
    line.dataset.parts = own.join(" ");
    if (telling.length) line.append(make("span", { className: "bars" }, ...telling.map((className) => make("i", { className }))));
  }
}

function clearFormat() {
  shown = parts = null;
  say("");
  for (const place of ["facts", "diagnostics"]) fill($(place));
  $("verify").hidden = true;
  source.copy();
}

function drawFormat(found) {
  shown = found;
  parts = new Parts(found.pictures);
  say(loading ? "" : format ? "" : `Format found (${found.renderings} renderings)`);
  fill($("pictures"), ...found.pictures.map((row) => picture(row, parts, (piece) => open(piece.field, ...evidenceOf(piece, shown.evidence)))));
  $("facts").textContent = found.facts.join(" · ");
  $("verify").hidden = false;
  fill($("diagnostics"), ...list([...new Set([...found.warnings, ...found.diagnostics])], "bad"));
  drawTemplate();
  drawTime(); // The output's parts are linked to the format's parts.
}

function clearChecks() {
  report = null;
  Object.assign($("verify"), { textContent: "Verify", className: "" });
}

/** Run the checks one by one, so that other requests don't have to wait. If the checks have already run, show their results. */
async function verify() {
  if (report) {
    open("Checks", make("table", {}, ...report.map(checkRow)));
    return;
  }
  const mine = forget("checks");
  const found = [];
  for (const [index, check] of (shown?.checks ?? []).entries()) {
    $("verify").textContent = `Verifying ${index + 1} / ${shown.checks.length}`;
    const answer = await ask("checks", { ...template(), check });
    if (mine !== counts.checks) return;
    problem("checks", answer.error);
    if (answer.error) {
      clearChecks();
      return;
    }
    found.push(...answer.findings);
  }
  drawChecks(found);
}

function drawChecks(found) {
  report = found;
  const count = (verdict) => found.filter((finding) => finding.verdict === verdict).length;
  const [passed, failed] = [count("passed"), count("failed")];
  const textContent = failed ? `${failed} of ${passed + failed} checks failed` : `✓ verified: ${passed} checks passed`;
  Object.assign($("verify"), { textContent, className: failed ? "bad" : "good" });
}

function checkRow(finding) {
  const count = finding.total ? ` (${finding.held} of ${finding.total})` : "";
  const example = finding.counterexample;
  const why = example ? `${example.answer}\nexpected ${example.expected}\nfound ${example.found}` : finding.reason;
  const className = { passed: "good", failed: "bad" }[finding.verdict] ?? "hint";
  return make("tr", {}, header(finding.capability), make("td", { className, textContent: finding.verdict + count }), make("td", { textContent: why }));
}

/** Show something in a dialog. */
function open(title, ...children) {
  $("sheet-title").textContent = title;
  fill($("sheet-body"), ...children);
  $("sheet").showModal();
}

// ---- the conversation and its prompt --------------------------------------------------------------------------------

function drawMessages() {
  const rows = messages.map((message, index) => {
    const role = make("select", { value: message.role, ariaLabel: `Role of message ${index + 1}` });
    const roles = ["system", "user", "assistant", "tool", "developer"];
    if (!roles.includes(message.role)) roles.push(message.role);
    fill(role, ...roles.map((name) => make("option", { textContent: name, selected: name === message.role })));
    role.addEventListener("change", () => change(index, { ...message, role: role.value }));
    const plain = isPlain(message);
    const text = make("textarea", { rows: 2, value: plain ? message.content : JSON.stringify(message), spellcheck: false });
    text.ariaLabel = plain ? `Text of message ${index + 1}` : `Message ${index + 1}, as JSON`;
    text.addEventListener("input", () => retype(index, text));
    const remove = make("button", { type: "button", textContent: "Remove", ariaLabel: `Remove message ${index + 1}` });
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

/** Update a message from its text area. A JSON object with a role is the whole message, and any other text is the content. */
function retype(index, text) {
  const { role } = messages[index];
  let message = { role, content: text.value };
  if (text.value.startsWith("{")) {
    try {
      const read = JSON.parse(text.value);
      if (typeof read.role === "string") message = read;
    } catch {
      // Incomplete JSON is content.
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

/** Add a message that contains a whole conversation, with the template's own markers. */
function forge() {
  if (!attack) return;
  messages = [...messages, { role: "user", content: attack }];
  drawMessages();
  refreshTurn();
}

function drawPrompt(turn) {
  attack = turn.attack;
  fill($("prompt"), ...promptParts(turn));
  const triggers = turn.triggers.map((trigger) => trigger.value ?? JSON.stringify(trigger));
  const rows = [
    ["stop", turn.stop.map(quoted).join("  ")],
    ["preserved tokens", turn.preserved_tokens.join("  ")],
    ["grammar triggers", triggers.join("  ")],
    ["thinking", { true: "on", false: "off" }[turn.thinking] ?? "can't be switched"],
    ["tools", turn.tool_prompt ? "in the system message, as the template doesn't write them" : "in the prompt"],
    ["mask", turn.mask],
    ["warnings", turn.warnings.join("\n")],
  ];
  const given = rows.filter(([, value]) => value);
  fill($("engine"), ...given.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));
}

function promptParts(turn) {
  const points = Array.from(turn.prompt); // Python counts characters, JavaScript UTF-16 units.
  const total = points.length;
  const begun = turn.prefill && turn.prompt.endsWith(turn.prefill) ? total - Array.from(turn.prefill).length : total;
  const history = Math.min(turn.history ?? begun, begun);
  const layers = [
    ...turn.written.map(([start, end]) => [start, end, "written"]),
    [history, begun, "generation"],
    [begun, total, "begun"],
    ...turn.owners.map(([start, end, role, where]) => [start, end, `of-${role}`, where]),
    ...turn.marked.map(([start, end]) => [start, end, "forged", "stays text with Turn.encode"]),
  ];
  const names = points.map(() => []); // The layers of each character.
  for (const layer of layers) for (let at = layer[0]; at < layer[1]; at += 1) names[at].push(layer);
  const found = [];
  for (let at = 0, end = 0; at < total; at = end) {
    const same = (other) => names[other].length === names[at].length && names[other].every((layer, k) => layer === names[at][k]);
    while (end < total && same(end)) end += 1;
    const text = points.slice(at, end).join("");
    const title = names[at].map(([, , , where]) => where).filter(Boolean).join(", ");
    found.push(names[at].length ? make("mark", { className: names[at].map(([, , name]) => name).join(" "), title, textContent: text }) : text);
  }
  return found;
}

// ---- the replay of the output --------------------------------------------------------------------------------------------

function clearFilm() {
  film = null;
  stop();
  forget("explanation");
  for (const place of ["events", "deltas", "message", "explanation", "verdict", "time-shown"]) fill($(place));
  drawStretches();
}

async function read() {
  if (await run("read")) await run("explanation");
}

/** Generate an output and parse it: a random answer, or a readable one with all parts. */
async function sample(plain = false) {
  legible = plain;
  if (!(await run("sample"))) return;
  if (!plain) say("A random answer that the format allows.");
  await read();
}

function drawFilm(found) {
  const text = recording ? recording.join("") : $("output").value;
  const coarser = recording ? recording.length >= found.steps.length : found.chunk > cut().chunk;
  // If only the request has changed, keep the position of the slider.
  const same = film?.output === text && film.steps.length === found.steps.length;
  const place = time ?? (same ? Number($("time").value) : found.steps.length);
  film = new Film({ ...found, whole: found.message, coarser }, text, (role, said) => parts?.of(role, said) ?? "");
  $("time").max = String(found.steps.length);
  $("time").value = String(Math.min(place, found.steps.length));
  time = null;
  drawTime();
}

function drawExplanation(found) {
  const stops = found.stops.map((stop) => `At character ${stop.position}: expected ${stop.expected}, found ${stop.found ? JSON.stringify(stop.found) : "the end of the output"}`);
  const hints = found.hints.map((hint) => `${hint.text.replace(/[^?]$/, "$&.")} ${hint.fix}`);
  const nearest = found.nearest ? [`Another syntax would have read it: ${found.nearest.name}`] : [];
  const wrong = found.stops.length || 1;
  $("verdict").className = found.clean ? "good" : "bad";
  $("verdict").textContent = found.clean ? "Parsed, no problems" : wrong === 1 ? "1 problem" : `${wrong} problems`;
  if (!$("output").value) fill($("verdict"));
  fill($("explanation"), ...list([...stops, ...hints, ...nearest], "bad"), ...list(found.tolerances));
}

/** Colour the output up to the slider's position. While the user types, colour the part that hasn't changed. */
function drawStretches() {
  const text = $("output").value;
  let same = film ? Math.min(text.length, film.output.length) : 0;
  if (film && text !== film.output) for (let at = 0; at < same; at += 1) if (text[at] !== film.output[at]) same = at;
  const found = film?.stretches(Number($("time").value), same) ?? {};
  for (const role of ROLES) output.paint(role, found[role] ?? []);
  output.paint("joined", []);
}

function drawTime() {
  if (!film) return;
  const index = Number($("time").value);
  $("time-shown").textContent = film.said(index);
  $("time").ariaValueText = film.said(index);
  drawStretches();
  const [whole, tab] = [index === film.steps.length, selected()];
  if (tab === "message") fill($("message"), ...messageRows(film.messageAt(index), whole ? film.failed_calls : [], whole && film.finish_reason));
  if (tab !== "events" && tab !== "deltas") return;
  fill($(tab), ...film.logged(index, tab));
  $(`panel-${tab}`).scrollTop = $(tab).scrollHeight; // This forces a layout, so it comes last.
}

function play() {
  if (playing) {
    stop();
    return;
  }
  const slider = $("time");
  if (slider.value === slider.max) slider.value = "0";
  const stride = Math.max(1, Math.ceil(Number(slider.max) / 300));
  Object.assign($("play"), { textContent: "⏸", ariaLabel: "Pause" });
  playing = setInterval(() => {
    slider.value = String(Number(slider.value) + stride);
    drawTime();
    if (slider.value === slider.max) stop();
  }, 50);
}

function stop() {
  clearInterval(playing);
  playing = null;
  Object.assign($("play"), { textContent: "▶", ariaLabel: "Play" });
}

function drawSample(found) {
  recording = null;
  made = true;
  $("output").value = found.output;
  output.copy();
}

/** Clear an output that the page generated for another template. */
function clearSample() {
  if (!made) return;
  $("output").value = "";
  for (const name of ["read", "explanation"]) {
    forget(name);
    problem(name);
  }
  clearFilm();
  output.copy();
}

/** Open a recorded stream: a JSON string or an OpenAI chunk on each line. */
async function openRecording(file) {
  const lines = (await file.text()).split("\n").filter((line) => line.trim());
  try {
    const chunks = lines.map((line) => textOf(JSON.parse(line.replace(/^data: /, ""))));
    recording = chunks.flat().filter((chunk) => chunk && typeof chunk === "string");
  } catch (error) {
    problem("recording", `${file.name}: expected a JSON text on each line: ${error.message}`);
    return;
  }
  problem("recording");
  made = false;
  $("output").value = recording.join("");
  output.copy();
  await read();
}

function textOf(value) {
  if (typeof value === "string" || Array.isArray(value)) return value;
  const choice = value.choices?.[0] ?? value;
  return choice.text ?? choice.delta?.content ?? choice.content ?? "";
}

// ---- links between parts ------------------------------------------------------------------------------------------

/** Highlight parts of the format in its picture, the template, the events and the output. `stretch` limits the highlight to one range of the output. */
function join(own = [], stretch = null) {
  const overlaps = (from, to) => !stretch || (Number(from) < stretch.to && Number(to) > stretch.from);
  const shares = (numbers) => numbers.split(" ").some((number) => number && own.includes(number));
  for (const other of document.querySelectorAll("[data-parts]")) {
    const { parts: numbers, from = -Infinity, to = Infinity } = other.dataset;
    other.classList.toggle("joined", shares(numbers) && overlaps(from, to));
  }
  const settled = film ? film.at(film.step(Number($("time").value)).settled) : 0;
  const spans = own.length && film?.output === $("output").value ? film.spans.slice(0, 1000) : [];
  const found = spans.filter((span) => span.to <= settled && overlaps(span.from, span.to) && shares(film.partsOf(span)));
  output.paint("joined", found.map(({ from, to }) => [from, to]), 1);
}

function joinSpan(position) {
  const span = film?.output === $("output").value ? film.spanAt(position) : null;
  join(span ? film.partsOf(span).split(" ") : [], span);
}

function joinLine(position) {
  join(source.lines[source.line(position)]?.dataset.parts?.split(" "));
}

/** Highlight the parts under the pointer. */
function point({ target, clientX, clientY }) {
  const at = { source, output }[target.id]?.below(clientX, clientY);
  if (Number.isInteger(at)) target === $("output") ? joinSpan(at) : joinLine(at);
  else joinElement(target);
}

function joinElement(target) {
  const { parts: numbers, from, to } = target.closest?.("[data-parts]")?.dataset ?? {};
  join(numbers?.split(" "), from && { from: Number(from), to: Number(to) });
}

// ---- grammars, comparing, code --------------------------------------------------------------------------------------

function drawGrammar(found) {
  $("grammar").textContent = found.grammar;
  fill($("not-enforced"), ...found.warnings.map((text) => make("li", { textContent: text })));
}

function compare() {
  if (kept) return run("compare");
  forget("compare");
  problem("compare");
  fill($("differences"));
}

function drawDifferences(found) {
  const text = (value) => (value === null ? "—" : typeof value === "string" ? quoted(value) : JSON.stringify(value));
  const rows = found.differences.map((item) => make("tr", {}, header(item.path), make("td", { textContent: text(item.before) }), make("td", { textContent: text(item.after) })));
  const head = make("tr", {}, ...["field", "pinned", "this"].map((name) => make("th", { scope: "col", textContent: name })));
  const side = (name, said) => make("div", {}, make("h2", { textContent: said }), ...found.pictures[name].map((row) => picture(row, null)));
  const table = rows.length ? make("table", {}, head, ...rows) : make("p", { className: "good", textContent: "No differences" });
  fill($("differences"), make("div", { className: "sides" }, side("before", "pinned"), side("after", "this")), table);
}

function keep() {
  kept = template();
  problem("kept");
  const name = templates[$("example").value]?.name;
  $("kept").textContent = `pinned: ${name ?? `${kept.source.length} characters`}`;
  compare();
}

/** Open a format for the comparison, as `unrender format show` prints it. */
async function keepFormat(file) {
  try {
    kept = { format: JSON.parse(await file.text()) };
  } catch (error) {
    problem("kept", `${file.name}: expected a format as JSON: ${error.message}`);
    return;
  }
  problem("kept");
  $("kept").textContent = `pinned: ${file.name}`;
  await compare();
}

let uses = [];

/** Show code for this template. The page can download the template's file. */
function drawUse() {
  const { bos_token, eos_token } = template();
  const given = Object.entries({ bos_token, eos_token }).filter(([, value]) => value);
  const tokens = given.map(([name, value]) => `, ${name}=${JSON.stringify(value)}`).join("");
  $("commands").textContent = uses[Number($("use").value)]?.lines.join("\n").replace("{tokens}", () => tokens) ?? "";
}

/** Return a bug report in Markdown, with everything that's needed to reproduce the problem. */
function bugReport() {
  const block = (title, text, language = "") => {
    const fence = "`".repeat(Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length)) + 1);
    return `**${title}**\n\n${fence}${language}\n${text}\n${fence}\n`;
  };
  const { source: text, bos_token, eos_token } = template();
  return [
    `unrender ${shown?.version ?? "?"}; tokens ${JSON.stringify({ bos_token, eos_token })}\n`,
    ...[...new Set(problems.values())].map((said) => block("Error", said)),
    block("Template", text, "jinja"),
    block("Conversation", JSON.stringify({ messages, tools: $("tools").value, thinking: $("thinking").value, tool_choice: $("tool_choice").value }, null, 1), "json"),
    block("Output", $("output").value),
    block("Message", film ? JSON.stringify(film.whole, null, 1) : "none", "json"),
    block("Problems", `${$("verdict").textContent}\n${$("explanation").textContent}`),
  ].join("\n");
}

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    say(said);
  } catch {
    problem("copying", "The browser does not let this page copy.");
  }
}

// ---- links, and the page around this one ----------------------------------------------------------------------------

const outer = window.parent === window ? null : window.parent;
let outside = ""; // The URL of the outer page, once it's known.

/** Send a message to the outer page, if it's from the same site. */
function tell(said) {
  outer?.postMessage({ playground: said }, location.origin);
}

/** Store the page's state in the URL. Return whether the state fits. */
async function remember() {
  const hash = await packed(everything());
  history.replaceState(null, "", hash || location.pathname + location.search);
  tell({ hash });
  return Boolean(hash);
}

const rememberSoon = later(remember, 2 * PAUSE);

async function share() {
  if (!(await remember())) {
    problem("link", "This is too long for a link. Use “Copy bug report” instead.");
    return;
  }
  problem("link");
  await copy((outside || location.href.split("#")[0]) + location.hash, "Link copied. It holds everything on this page.");
}

/** Show the state in the URL. Return whether the URL contains a valid state. */
async function fromLink() {
  try {
    const state = await unpacked(location.hash);
    problem("link");
    if (!state) return false;
    made = !state.output; // A link may have been copied before its output was generated.
    enter(state);
    return true;
  } catch (error) {
    problem("link", `The link cannot be used: ${error.message}.`);
    return false;
  }
}

function hear({ source: from, origin, data }) {
  if (from !== outer || origin !== location.origin || !data?.playground) return;
  const { scheme, hash, address } = data.playground;
  outside = address ?? outside;
  if (scheme) document.documentElement.dataset.scheme = scheme;
  if (hash && hash !== location.hash) location.hash = hash;
}

// ---- the whole page -------------------------------------------------------------------------------------------------

function refreshTurn(another = false) {
  run("prompt");
  if (another) sample(true);
  else read();
  run("grammar");
}

/** Send all requests for a new template. If the page generated the output, another one is generated. */
async function refreshAll(another = made, chosen = false) {
  forget("checks");
  problem("checks");
  clearChecks();
  const { source: text, bos_token, eos_token } = template();
  const same = templates.findIndex((item) => item.source === text && (item.bos_token ?? "") === bos_token && (item.eos_token ?? "") === eos_token);
  $("example").value = same < 0 ? "" : String(same);
  $("note").textContent = templates[same]?.note ?? "";
  drawUse();
  compare();
  refreshTurn(another);
  // Checks are slow in Pyodide. Unless their results are stored, they run only after a click.
  if ((await run("format")) && chosen && (!alone || (await stored("checks", { ...template(), check: shown.checks[0] })))) verify();
}

const refreshTurnSoon = later(() => refreshTurn());
const refreshAllSoon = later(() => refreshAll());
const readSoon = later(read);

function selected() {
  return document.querySelector("[role=tab][aria-selected=true]").id.slice(4);
}

function select(tab) {
  for (const other of document.querySelectorAll("[role=tab]")) {
    other.ariaSelected = String(other === tab);
    other.tabIndex = other === tab ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
  drawTime();
}

/** Arrows, Home and End move between tabs. */
function moveTab(event) {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const at = tabs.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const tab = tabs.at(to % tabs.length);
  tab.focus();
  select(tab);
}

function changeTheme() {
  const { dataset } = document.documentElement;
  const dark = dataset.scheme ? dataset.scheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.scheme = dark ? "light" : "dark";
}

function start() {
  $("template").open = !NARROW.matches;
  $("theme").hidden = Boolean(outer);
  if (alone) $("where").textContent = "Runs in your browser.";
  const buttons = {
    verify,
    sample,
    share,
    keep,
    play,
    theme: changeTheme,
    issue: () => copy(bugReport(), "Bug report copied, as Markdown."),
    json: () => open("Format as JSON", make("pre", { tabIndex: 0, textContent: JSON.stringify(shown?.format ?? null, null, 2) })),
    picture: () => download("format.svg", "image/svg+xml", drawing($("pictures"))),
    comparing: () => $("compare").showModal(),
    save: () => download("chat_template.jinja", "text/plain", $("source").value),
    "copy-use": () => copy($("commands").textContent, "Code copied."),
  };
  for (const [id, action] of Object.entries(buttons)) $(id).addEventListener("click", () => action());
  for (const button of document.querySelectorAll("dialog .close")) button.addEventListener("click", () => button.closest("dialog").close());
  for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => select(tab));
  document.querySelector("[role=tablist]").addEventListener("keydown", moveTab);
  listen(["source", "bos_token", "eos_token"], "input", () => {
    format = null; // The format of an edited template is derived again.
    refreshAllSoon();
  });
  listen(["tools"], "input", refreshTurnSoon);
  listen(["thinking", "tool_choice", "parallel"], "change", () => refreshTurn());
  listen(["output", "chunk"], "input", ({ target }) => {
    if (target === $("output")) made = !target.value;
    recording = null;
    readSoon();
  });
  listen(["time"], "input", drawTime);
  listen(["dialect"], "change", () => run("grammar"));
  listen(["use"], "change", drawUse);
  listen(["attack"], "click", forge);
  listen(["add"], "click", () => {
    messages = [...messages, { role: messages.at(-1)?.role === "user" ? "assistant" : "user", content: "" }];
    drawMessages();
    refreshTurn();
    $("messages").querySelector("li:last-child textarea").focus();
  });
  for (const event of ["keyup", "click"]) {
    listen(["source"], event, () => joinLine($("source").selectionStart));
    listen(["output"], event, () => joinSpan($("output").selectionStart));
  }
  const files = { file: async (file) => openTemplate(file.name, await file.text()), recording: openRecording, "kept-format": keepFormat };
  for (const [id, opens] of Object.entries(files)) {
    listen([id], "change", async () => {
      const [file] = $(id).files;
      if (file) await opens(file);
      rememberSoon();
    });
  }
  for (const event of ["input", "change", "click"]) for (const place of ["main", "#compare"]) document.querySelector(place).addEventListener(event, rememberSoon);
  document.addEventListener("pointermove", point);
  document.addEventListener("focusin", ({ target }) => joinElement(target));
  addEventListener("hashchange", fromLink);
  addEventListener("message", hear);
  tell({ hello: true });
  new ResizeObserver(() => tell({ height: NARROW.matches ? document.body.offsetHeight : null })).observe(document.body);
  return begin();
}

/** Show the state in the URL, or the first example. */
async function begin() {
  if (alone) load();
  const [{ examples, ...first }, named, used] = await Promise.all([fetched("examples.json"), offered(), fetched("uses.json")]);
  const noted = examples.map((item) => ({ ...item, note: `This is ${item.name}'s own format, derived from its chat template. The template above is a short one of ours that writes it. Edit it, and the format is derived from your text.` }));
  templates = [...named, ...noted];
  uses = used;
  fill($("use"), ...uses.map(({ name }, index) => make("option", { value: String(index), textContent: name })));
  const own = make("option", { value: "", textContent: "Paste your own…" });
  fill($("example"), ...templates.map((item, index) => make("option", { value: String(index), textContent: item.name })), own);
  const choose = (chosen) => {
    made = true;
    problem("link");
    enter({ ...first, kept, keptName: $("kept").textContent, ...chosen });
  };
  listen(["example"], "change", ({ target }) => {
    choose(templates[target.value]);
    if (!target.value) {
      $("template").open = true;
      $("source").focus();
    }
    rememberSoon();
  });
  if (!(await fromLink())) {
    const broken = problems.get("link");
    choose(templates[0]);
    problem("link", broken);
  }
}

/** Show a message while Python is loading. */
async function load() {
  loading = "Loading Python (14 MB, first visit only). The examples already work.";
  const error = await ready;
  loading = "";
  problem("python", error);
}

async function fetched(name) {
  return (await fetch(name)).json();
}

/** Open a template file: Jinja, or a tokenizer configuration with a template and its tokens. */
function openTemplate(name, text) {
  let entered = { source: text };
  if (name.endsWith(".json")) {
    try {
      const found = JSON.parse(text);
      const token = (value) => (typeof value === "string" ? value : (value?.content ?? ""));
      const written = Array.isArray(found.chat_template) ? found.chat_template[0].template : found.chat_template;
      if (typeof written !== "string") throw new TypeError("no chat_template in it");
      entered = { source: written, bos_token: token(found.bos_token), eos_token: token(found.eos_token) };
    } catch (error) {
      problem("file", `${name}: ${error.message}`);
      return;
    }
  }
  problem("file");
  made = true;
  enter({ ...everything(), recording: null, time: null, ...entered });
}

start();
