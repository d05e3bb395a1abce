// The page: what is entered goes to `ask`, what comes back is drawn. An answer that fails clears its place, and is said once.

import { alone, ask, offered, ready } from "./backend.js";
import { $, download, fill, header, list, listen, make, quoted, scrolled } from "./dom.js";
import { Film, messageText } from "./film.js";
import { Parts, drawing, evidenceOf, join, joinLine, picture } from "./format.js";
import { packed, unpacked } from "./link.js";

const ROLES = ["reasoning", "content", "marker", "name", "id", "argument", "malformed", "held"];
const TYPED = ["source", "bos_token", "eos_token", "tools", "thinking", "tool_choice", "output", "chunk", "dialect"];
const BLANK = { ...Object.fromEntries(TYPED.map((id) => [id, ""])), chunk: "4", dialect: "gbnf", parallel: true, recording: null, kept: null, keptName: "", time: null };
const PAUSE = 250; // Milliseconds without typing before a question is asked.

let messages = [{ role: "user", content: "Hello" }];
let shown = null; // The answer to the last "format".
let parts = null; // Its parts.
let film = null; // The answer to the last "read", with the output that was read.
let verdict = null; // The answer to the last "explanation".
let recording = null; // The chunks of a recording, instead of chunks of one size.
let made = true; // The output is one that the page made: another template brings its own.
let legible = true; // The next sample is as the template writes an answer that has everything, not a random one.
let good = ""; // What went well last.
let kept = null; // The template, or the format, to compare with.
let time = null; // The slider's place that a link asks for.
let playing = null;
let templates = []; // What can be started from.

// ---- asking, and what went wrong ------------------------------------------------------------------------------------

/** What is asked, by its name: the question's fields, what draws its answer in `place`, and what else it clears when it fails. */
const PANELS = {
  format: { place: "pictures", asks: template, draws: drawFormat, clears: clearFormat },
  prompt: { place: "prompt", asks: asked, draws: drawPrompt, clears: () => fill($("engine")) },
  sample: { asks: () => ({ ...asked(), seed: Math.floor(Math.random() * 1e9), legible }), draws: drawSample, clears: clearSample },
  read: { place: "film", asks: () => ({ ...asked(), ...cut() }), draws: drawFilm, clears: clearFilm },
  explanation: { place: "explanation", asks: () => ({ ...asked(), output: $("output").value }), draws: drawExplanation, clears: () => (verdict = null) },
  grammar: { place: "grammar", asks: () => ({ ...asked(), dialect: $("dialect").value }), draws: drawGrammar, clears: () => fill($("not-enforced")) },
  compare: { place: "differences", asks: () => ({ before: kept, after: template() }), draws: drawDifferences, clears: () => {} },
};
const problems = new Map(); // What went wrong, by what went wrong.
const counts = {};

/** Ask one question and draw its answer, unless it was asked again meanwhile, or `forget` dropped it. Return whether it was drawn. */
async function run(name) {
  const mine = forget(name);
  const { place, asks, draws, clears } = PANELS[name];
  const section = place && $(place).closest("section");
  section?.setAttribute("aria-busy", "true");
  let answer;
  try {
    answer = await ask(name, asks());
  } catch (error) {
    answer = { error: error.message };
  }
  if (mine !== counts[name]) return false;
  section?.removeAttribute("aria-busy");
  if (answer.error) {
    if (place) fill($(place));
    clears();
  }
  problem(name, answer.error);
  if (!answer.error) draws(answer);
  return !answer.error;
}

/** Drop the answer to a question that is under way. */
function forget(name) {
  const { place } = PANELS[name] ?? {};
  if (place) $(place).closest("section").removeAttribute("aria-busy");
  counts[name] = (counts[name] ?? 0) + 1;
  return counts[name];
}

/** Say what went wrong with something, or that nothing did: each sentence once, in its place and above. */
function problem(name, text = "") {
  problems.delete(name);
  if (text) problems.set(name, text);
  const said = new Set();
  for (const [panel, { place }] of Object.entries(PANELS)) {
    const error = problems.get(panel);
    if (!error || !place) continue;
    const again = said.has(error);
    fill($(place), make("span", { className: again ? "hint" : "bad", textContent: again ? "Nothing, for the reason above." : error }));
    said.add(error);
  }
  drawStatus();
}

/** Say what went well; what is wrong stays. */
function say(text) {
  good = text;
  drawStatus();
}

function drawStatus() {
  $("status").classList.toggle("bad", problems.size > 0);
  $("status").textContent = problems.size ? [...new Set(problems.values())].join(" · ") : good;
}

// ---- what is entered ------------------------------------------------------------------------------------------------

function template() {
  return { source: $("source").value, bos_token: $("bos_token").value, eos_token: $("eos_token").value };
}

/** The question that most answers depend on. Throws an error where the tools are not JSON. */
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

/** What is read: the output in chunks of one size, or as it was recorded. */
function cut() {
  return recording ? { chunks: recording } : { output: $("output").value, chunk: Number($("chunk").value) };
}

function everything() {
  const entered = Object.fromEntries(TYPED.map((id) => [id, $(id).value]));
  const end = $("time").value === $("time").max;
  return { ...entered, parallel: $("parallel").checked, messages, recording, kept, keptName: $("kept").textContent, time: end ? null : Number($("time").value) };
}

/** Show a state of the page, from an example or a link. */
function enter(given) {
  const state = { ...BLANK, ...given };
  for (const id of TYPED) $(id).value = typeof state[id] === "string" ? state[id] : JSON.stringify(state[id], null, 1);
  if (!$("dialect").value) $("dialect").value = BLANK.dialect;
  ({ recording, kept, time } = state);
  $("parallel").checked = state.parallel;
  $("kept").textContent = state.keptName;
  if (state.messages) messages = state.messages;
  showChunk();
  drawMessages();
  refreshAll(made && !state.output);
}

function later(action, pause = PAUSE) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, pause);
  };
}

// ---- the format -----------------------------------------------------------------------------------------------------

function clearFormat() {
  shown = parts = null;
  for (const place of ["evidence", "diagnostics", "lines"]) fill($(place));
  fill($("markers").querySelector("table"));
}

function drawFormat(found) {
  clearFormat();
  shown = found;
  parts = new Parts(found.pictures);
  say(`Derived from ${found.renderings} renderings.`);
  fill($("pictures"), ...found.pictures.map((row) => picture(row, parts, choose)));
  fill($("diagnostics"), ...list([...new Set([...found.warnings, ...found.diagnostics])], "bad"));
  const rows = found.markers.map(([path, value]) => make("tr", {}, header(path), make("td", { textContent: quoted(value) })));
  fill($("markers").querySelector("table"), ...rows);
  drawTime(); // Its parts are joined with those of the format.
}

function choose(button, piece) {
  for (const other of $("pictures").querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
  fill($("evidence"), ...evidenceOf(piece, shown.evidence));
}

/** Make the checks one by one, so that what is found shows at once and a person may stop. */
async function verify() {
  if ($("verify").textContent === "Stop") {
    stopChecks();
    return;
  }
  const mine = forget("checks");
  const question = template();
  const table = make("table");
  const progress = make("progress", { max: 1, value: 0 });
  const words = make("span", { className: "hint" });
  progress.setAttribute("aria-label", "How many checks are made");
  $("verify").textContent = "Stop";
  fill($("checks"), make("div", { className: "row" }, progress, words), scrolled("The checks", table));
  const checks = shown?.checks ?? [""];
  for (const [index, check] of checks.entries()) {
    words.textContent = `${index + 1} of ${checks.length}: ${check}`;
    const report = await ask("checks", { ...question, check });
    if (mine !== counts.checks) return;
    problem("checks", report.error);
    if (report.error) break;
    table.append(...report.findings.map(checkRow));
    Object.assign(progress, { max: checks.length, value: index + 1 });
  }
  progress.parentElement.remove();
  $("verify").textContent = "Verify";
  if (!problems.has("checks")) say(`Passed: ${table.querySelectorAll(".good").length}; failed: ${table.querySelectorAll(".bad").length}.`);
}

function stopChecks() {
  forget("checks");
  $("verify").textContent = "Verify";
  $("checks").querySelector(".row")?.replaceWith(make("p", { className: "hint", textContent: "Stopped; what was found until then:" }));
}

function checkRow(finding) {
  const count = finding.total ? ` (${finding.held} of ${finding.total})` : "";
  const example = finding.counterexample;
  const why = example ? `${example.answer}\nexpected ${example.expected}\nfound ${example.found}` : finding.reason;
  const className = { passed: "good", failed: "bad" }[finding.verdict] ?? "hint";
  return make("tr", {}, header(finding.capability), make("td", { className, textContent: finding.verdict + count }), make("td", { textContent: why }));
}

// ---- the conversation and its prompt --------------------------------------------------------------------------------

function drawMessages() {
  const rows = messages.map((message, index) => {
    const role = make("select", { value: message.role });
    role.setAttribute("aria-label", `Role of message ${index + 1}`);
    const roles = ["system", "user", "assistant", "tool", "developer"];
    if (!roles.includes(message.role)) roles.push(message.role);
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
      if (typeof read.role === "string") message = read;
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

function drawPrompt(turn) {
  fill($("prompt"), ...promptParts(turn));
  const triggers = turn.triggers.map((trigger) => trigger.value ?? JSON.stringify(trigger));
  const rows = [
    ["stop", turn.stop.map(quoted).join("  ")],
    ["preserved tokens", turn.preserved_tokens.join("  ")],
    ["grammar triggers", triggers.join("  ")],
    ["thinking", { true: "on", false: "off" }[turn.thinking] ?? "no switch"],
    ["tools", turn.tool_prompt ? "described in the system message by unrender, as the template ignores them" : "rendered by the template"],
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
  const cuts = [...turn.written.map(([start, end]) => [start, end, "written"]), [history, begun, "generation"], [begun, total, "begun"]];
  const found = [];
  let at = 0;
  for (const [start, end, name] of cuts) {
    if (start > at) found.push(points.slice(at, start).join(""));
    if (end > start) found.push(make("mark", { className: name, textContent: points.slice(start, end).join("") }));
    at = Math.max(at, end);
  }
  return found;
}

// ---- the output, in time --------------------------------------------------------------------------------------------

function clearFilm() {
  film = null;
  stop();
  forget("explanation");
  for (const place of ["events", "deltas", "message", "explanation", "time-shown"]) fill($(place));
}

async function read() {
  if (await run("read")) await run("explanation");
}

/** Make an output and read it: a random one, or one that shows all that the template writes. */
async function sample(plain = false) {
  legible = plain;
  if (!(await run("sample"))) return;
  if (!plain) say("A random answer that the format allows.");
  await read();
}

function drawFilm(found) {
  const output = recording ? recording.join("") : $("output").value;
  const coarser = recording ? recording.length >= found.steps.length : found.chunk > Number($("chunk").value);
  // The same answer, read anew for another request, stays where it is.
  const same = film?.output === output && film.steps.length === found.steps.length;
  const place = time ?? (same ? Number($("time").value) : found.steps.length);
  film = new Film({ ...found, whole: found.message, coarser }, output, (role, text) => parts?.of(role, text) ?? "");
  $("time").max = String(found.steps.length);
  $("time").value = String(Math.min(place, found.steps.length));
  time = null;
  drawTime();
}

function drawExplanation(found) {
  verdict = found;
  const stops = found.stops.map((stop) => `At character ${stop.position}: expected ${stop.expected}, found ${stop.found ? JSON.stringify(stop.found) : "the end of the output"}`);
  const hints = found.hints.map((hint) => `${hint.text}. ${hint.fix}`);
  const nearest = found.nearest ? [`Another syntax would have read it: ${found.nearest.name}`] : [];
  const [className, textContent] = found.clean ? ["good", "Everything was read."] : ["bad", "Something is wrong:"];
  const said = $("output").value ? make("p", { className, textContent }) : make("p", { className: "hint", textContent: "There is no output yet." });
  fill($("explanation"), said, ...list([...stops, ...hints, ...nearest]), ...list(found.tolerances));
}

function drawTime() {
  if (!film) return;
  const index = Number($("time").value);
  $("time-shown").textContent = film.said(index);
  fill($("film"), ...film.drawn(index));
  for (const name of ["events", "deltas"]) fill($(name), ...film.logged(index, name));
  $("message").textContent = messageText(film.messageAt(index));
  for (const name of ["events", "deltas"]) $(name).scrollTop = $(name).scrollHeight; // Last: it makes the browser lay out all.
}

function play() {
  if (playing) {
    stop();
    return;
  }
  const slider = $("time");
  if (slider.value === slider.max) slider.value = "0";
  const stride = Math.max(1, Math.ceil(Number(slider.max) / 300));
  $("play").textContent = "Pause";
  playing = setInterval(() => {
    slider.value = String(Number(slider.value) + stride);
    drawTime();
    if (slider.value === slider.max) stop();
  }, 40);
}

function stop() {
  clearInterval(playing);
  playing = null;
  $("play").textContent = "Play";
}

function drawSample({ output }) {
  recording = null;
  made = true;
  $("output").value = output;
  showChunk();
}

/** An answer that was made for another template is not this one's. */
function clearSample() {
  if (!made) return;
  $("output").value = "";
  for (const name of ["read", "explanation"]) {
    forget(name);
    problem(name);
  }
  clearFilm();
  fill($("film"));
}

/** Take a recorded stream: one JSON text a line, or lines of OpenAI chunks with their text. */
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
  showChunk();
  await read();
}

function textOf(value) {
  if (typeof value === "string" || Array.isArray(value)) return value;
  const choice = value.choices?.[0] ?? value;
  return choice.text ?? choice.delta?.content ?? choice.content ?? "";
}

// ---- grammars, comparing, using -------------------------------------------------------------------------------------

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
  const head = make("tr", {}, ...["field", "kept", "this"].map((name) => make("th", { scope: "col", textContent: name })));
  const side = (name, said) => make("div", {}, make("h3", { textContent: said }), ...found.pictures[name].map((row) => picture(row, null)));
  const table = rows.length ? scrolled("Fields that differ", make("table", {}, head, ...rows)) : make("p", { className: "good", textContent: "Both are the same format." });
  fill($("differences"), make("div", { className: "sides" }, side("before", "kept"), side("after", "this")), table);
}

function keep() {
  kept = template();
  problem("kept");
  const name = templates[$("example").value]?.name;
  $("kept").textContent = `kept: ${name ?? `${kept.source.length} characters`}`;
  compare();
}

/** Take a format to compare with, as `unrender format show` writes it. */
async function keepFormat(file) {
  try {
    kept = { format: JSON.parse(await file.text()) };
  } catch (error) {
    problem("kept", `${file.name}: expected a format as JSON: ${error.message}`);
    return;
  }
  problem("kept");
  $("kept").textContent = `kept: ${file.name}`;
  await compare();
}

let uses = [];

/** How to use this template: commands with a file that the page can save. */
function drawUse() {
  const { bos_token, eos_token } = template();
  const given = Object.entries({ bos_token, eos_token }).filter(([, value]) => value);
  const tokens = given.map(([name, value]) => `, ${name}=${JSON.stringify(value)}`).join("");
  $("commands").textContent = uses[Number($("use").value)]?.lines.join("\n").replace("{tokens}", () => tokens) ?? "";
}

/** All that someone who mends it must know, as Markdown. */
function report() {
  const block = (title, text, language = "") => {
    const fence = "`".repeat(Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length)) + 1);
    return `**${title}**\n\n${fence}${language}\n${text}\n${fence}\n`;
  };
  const { source, bos_token, eos_token } = template();
  return [
    `unrender ${shown?.version ?? "?"}; tokens ${JSON.stringify({ bos_token, eos_token })}\n`,
    ...[...new Set(problems.values())].map((text) => block("Error", text)),
    block("Template", source, "jinja"),
    block("Conversation", JSON.stringify({ messages, tools: $("tools").value, thinking: $("thinking").value, tool_choice: $("tool_choice").value }, null, 1), "json"),
    block("Output", $("output").value),
    block("Read as", film ? JSON.stringify(film.whole, null, 1) : "nothing", "json"),
    block("Explained as", $("explanation").innerText),
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

const around = window.parent === window ? null : window.parent;
let outside = ""; // The address of that page, once it has told.

/** Tell the page that holds this one, which is of the same site or learns nothing. */
function tell(said) {
  around?.postMessage({ playground: said }, location.origin);
}

/** Keep the address such that reloading, and a copy of it, shows this page. Return whether it holds everything. */
async function remember() {
  const hash = await packed(everything());
  history.replaceState(null, "", hash || location.pathname + location.search);
  tell({ hash });
  return Boolean(hash);
}

const rememberSoon = later(remember, 2 * PAUSE);

async function share() {
  if (!(await remember())) {
    problem("link", "This is too long for a link: copy it as an issue instead.");
    return;
  }
  problem("link");
  await copy((outside || location.href.split("#")[0]) + location.hash, "The link is copied. It holds everything on this page.");
}

/** Show what the address holds. Return whether it holds anything that can be shown. */
async function fromLink() {
  try {
    const state = await unpacked(location.hash);
    problem("link");
    if (!state) return false;
    made = !("output" in state);
    enter(state);
    return true;
  } catch (error) {
    problem("link", `The link cannot be used: ${error.message}.`);
    return false;
  }
}

function hear({ source, origin, data }) {
  if (source !== around || origin !== location.origin || !data?.playground) return;
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

/** Another template: nothing of the one before stays; an output that the page made for that makes room for another. */
function refreshAll(another = made) {
  forget("checks");
  $("verify").textContent = "Verify";
  problem("checks");
  fill($("checks"));
  const { source, bos_token, eos_token } = template();
  const same = templates.findIndex((item) => item.source === source && (item.bos_token ?? "") === bos_token && (item.eos_token ?? "") === eos_token);
  $("example").value = same < 0 ? "" : String(same);
  drawUse();
  run("format");
  compare();
  refreshTurn(another);
}

const refreshTurnSoon = later(() => refreshTurn());
const refreshAllSoon = later(() => refreshAll());
const readSoon = later(read);

function showChunk() {
  $("chunk-shown").textContent = recording ? "as recorded" : $("chunk").value;
}

function start() {
  fill($("roles"), ...ROLES.map((role) => make("mark", { className: role, textContent: role === "held" ? "held back" : role })));
  const buttons = {
    verify,
    sample,
    share,
    keep,
    play,
    issue: () => copy(report(), "The issue is copied, as Markdown."),
    picture: () => download("format.svg", "image/svg+xml", drawing($("pictures"))),
    save: () => download("chat_template.jinja", "text/plain", $("source").value),
    "copy-use": () => copy($("commands").textContent, "The commands are copied."),
  };
  for (const [id, action] of Object.entries(buttons)) $(id).addEventListener("click", () => action());
  listen(["source", "bos_token", "eos_token"], "input", refreshAllSoon);
  listen(["tools"], "input", refreshTurnSoon);
  listen(["thinking", "tool_choice", "parallel"], "change", () => refreshTurn());
  listen(["output", "chunk"], "input", ({ target }) => {
    if (target === $("output")) made = !target.value;
    recording = null;
    showChunk();
    readSoon();
  });
  listen(["time"], "input", drawTime);
  listen(["dialect"], "change", () => run("grammar"));
  listen(["use"], "change", drawUse);
  listen(["add"], "click", () => {
    messages = [...messages, { role: messages.at(-1)?.role === "user" ? "assistant" : "user", content: "" }];
    drawMessages();
    refreshTurn();
    $("messages").querySelector("li:last-child textarea").focus();
  });
  listen(["source"], "keyup", caret);
  listen(["source"], "click", caret);
  const files = { file: async (file) => openTemplate(file.name, await file.text()), recording: openRecording, "kept-format": keepFormat };
  for (const [id, opens] of Object.entries(files)) {
    listen([id], "change", async () => {
      const [file] = $(id).files;
      if (file) await opens(file);
      rememberSoon();
    });
  }
  for (const event of ["input", "change", "click"]) document.querySelector("main").addEventListener(event, rememberSoon);
  for (const event of ["pointerover", "focusin"]) {
    document.addEventListener(event, ({ target }) => join(target.closest?.("[data-parts]"), $("source").value, parts));
  }
  addEventListener("hashchange", fromLink);
  addEventListener("message", hear);
  tell({ hello: true });
  new ResizeObserver(() => tell({ height: document.body.offsetHeight })).observe(document.body);
  return begin();
}

/** Show what the address holds, or the first example. */
async function begin() {
  if (alone) load();
  const [examples, named, used] = await Promise.all([fetched("examples.json"), offered(), fetched("uses.json")]);
  templates = [...named, ...examples];
  uses = used;
  fill($("use"), ...uses.map(({ name }, index) => make("option", { value: String(index), textContent: name })));
  const own = make("option", { value: "", textContent: "(your own)", hidden: true });
  fill($("example"), own, ...templates.map((item, index) => make("option", { value: String(index), textContent: item.name })));
  const first = { messages: examples[0].messages, tools: examples[0].tools };
  const choose = (index) => {
    made = true;
    problem("link");
    enter({ ...first, kept, keptName: $("kept").textContent, ...templates[index] });
  };
  listen(["example"], "change", ({ target }) => {
    choose(Number(target.value));
    rememberSoon();
  });
  if (!(await fromLink())) {
    const broken = problems.get("link");
    choose(0);
    problem("link", broken);
  }
}

/** Say that Python is loading, until it answers. */
async function load() {
  $("loading").hidden = false;
  problem("python", await ready);
  $("loading").hidden = true;
}

async function fetched(name) {
  return (await fetch(name)).json();
}

function caret() {
  if (parts) joinLine($("source").value, $("source").selectionStart, parts);
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
      problem("file", `${name}: ${error.message}`);
      return;
    }
  }
  problem("file");
  made = true;
  enter({ ...everything(), recording: null, time: null, ...entered });
}

start();
