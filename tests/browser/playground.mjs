// Uses the playground as a person does, with mouse and keyboard, in a real Chromium; one line of JSON for each check.
//
//   node playground.mjs URL CHROMIUM FOLDER ALONE     FOLDER holds node_modules, and takes the pictures; ALONE is a page that frames
//                                                     one that has no server, and whose Python cannot be loaded

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";

const [url, executablePath, folder, alone] = process.argv.slice(2);
const need = createRequire(join(folder, "package.json"));
const { chromium } = need("playwright-core");
const axe = readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const browser = await chromium.launch({ executablePath, headless: true, args: QUIET });
const complaints = [];

async function open(address = url, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 }, ...options });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(address);
  await page.waitForFunction(() => document.querySelector("#film mark") && document.querySelector("#pictures button"), null, { timeout: 90_000 });
  return page;
}

/** The part of an address that holds a state of the page, as the page packs it. */
const linkOf = (state) => `#v1=${deflateRawSync(JSON.stringify(state)).toString("base64url")}`;
const text = (page, selector) => page.textContent(selector);
const settles = (page, test, given) => page.waitForFunction(test, given, { timeout: 60_000 });

const checks = {
  async "a part leads to the renderings that show it"(page) {
    await page.click('#pictures button:has-text("<think>")');
    const shown = await page.$$eval("#evidence .only", (marks) => marks.map((mark) => mark.textContent));
    return shown.some((words) => words.startsWith("<think>")) || shown;
  },
  async "an output that is typed is read"(page) {
    await page.focus("#output");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("<think>hm</think>Hello");
    await settles(page, () => document.querySelector("#message").textContent.includes('"reasoning_content": "hm"'));
    const roles = await page.$$eval("#film mark", (marks) => marks.map((mark) => `${mark.className}=${mark.textContent}`));
    return roles.join(" ") === "marker=<think> reasoning=hm marker=</think> content=Hello" || roles;
  },
  async "time runs back by keyboard, and shows what is held back"(page) {
    await page.focus("#time");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    const held = await page.$$eval("#film .held", (marks) => marks.map((mark) => mark.textContent));
    const message = JSON.parse(await text(page, "#message"));
    return (held.join() === "<thi" && Object.keys(message).join() === "role") || { held, message };
  },
  async "time plays to its end"(page) {
    await page.focus("#time");
    await page.keyboard.press("Home");
    await page.click("#play");
    const named = [await text(page, "#play"), await page.getAttribute("#time-shown", "aria-live")];
    await settles(page, () => document.querySelector("#time").value === document.querySelector("#time").max);
    await settles(page, () => document.querySelector("#play").textContent === "Play");
    return ((await text(page, "#message")).includes("Hello") && named.join() === "Pause,off") || named;
  },
  async "an answer is sampled and read"(page) {
    const before = await page.inputValue("#output");
    await page.click("#sample");
    await settles(page, (old) => document.querySelector("#output").value !== old, before);
    await settles(page, () => document.querySelector("#explanation").textContent.includes("Everything was read."));
    return true;
  },
  async "each dialect is written"(page) {
    const found = [];
    for (const [dialect, sign] of [["lark", "start:"], ["structural-tag", '"type": "structural_tag"'], ["gbnf", "root ::="]]) {
      await page.selectOption("#dialect", dialect);
      await settles(page, (words) => document.querySelector("#grammar").textContent.includes(words), sign);
      found.push(dialect);
    }
    return found.length === 3;
  },
  async "a message is added, and the prompt shows what the model wrote"(page) {
    await page.click("#add");
    await page.keyboard.type("Wonderful.");
    await settles(page, () => [...document.querySelectorAll("#prompt .written")].some((mark) => mark.textContent.includes("Wonderful.")));
    await page.click('button[aria-label="Remove message 2"]');
    return (await page.$$("#messages li")).length === 1;
  },
  async "checks show their progress, stop when told, and leave with their template"(page) {
    await page.click("#verify");
    await settles(page, () => document.querySelector("#checks progress")?.value > 2);
    await page.click("#verify");
    const stopped = (await text(page, "#checks")).startsWith("Stopped") && (await text(page, "#verify")) === "Verify";
    await page.click("#verify");
    await settles(page, () => document.querySelectorAll("#checks td.good").length > 3);
    await page.selectOption("#example", { index: 2 });
    const left = await text(page, "#checks");
    await page.waitForTimeout(500);
    const later = await text(page, "#checks");
    await page.selectOption("#example", { index: 1 });
    await page.click("#verify");
    await settles(page, () => document.querySelector("#status").textContent.startsWith("Passed: "));
    const failed = await page.$$("#checks td.bad");
    return (stopped && !left && !later && failed.length === 0) || { stopped, left, later };
  },
  async "pointing at a part of the film shows its event, its part of the format and its line"(page) {
    await page.hover("#film mark.name");
    const joined = await page.$$eval(".joined", (found) => found.map((one) => `${one.tagName}=${one.textContent}`));
    const lines = await text(page, "#lines");
    const want = ["BUTTON=name", "MARK=get_weather"].every((item) => joined.includes(item));
    const event = joined.some((item) => item.startsWith("LI=") && item.includes("ToolCallStarted"));
    await page.hover('#pictures button:has-text("arguments\\":")');
    const back = await page.$$eval("#film .joined", (found) => found.map((one) => one.textContent));
    if (back.join() !== '"arguments":') return back;
    return (want && event && lines.includes("'name': call.function.name")) || { joined, lines };
  },
  async "the caret in the template marks what its line writes"(page) {
    await page.click("#source");
    await page.evaluate(() => document.querySelector("#source").setSelectionRange(0, 0));
    await page.evaluate(() => {
      const source = document.querySelector("#source");
      source.setSelectionRange(source.value.indexOf("<think>"), source.value.indexOf("<think>"));
    });
    await page.keyboard.press("Shift");
    const joined = await page.$$eval("#pictures .joined", (found) => found.map((one) => one.textContent));
    return joined.join() === "<think>,reasoning,</think>" || joined;
  },
  async "an issue and a picture are taken along"(page) {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.click("#issue");
    await settles(page, () => document.querySelector("#status").textContent.startsWith("The issue is copied"));
    const issue = await page.evaluate(() => navigator.clipboard.readText());
    const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#picture")]);
    const svg = readFileSync(await saved.path(), "utf8");
    const good = ["**Template**", "```jinja", "**Read as**", "get_weather"].every((words) => issue.includes(words));
    return (good && svg.startsWith("<svg ") && svg.includes("&#60;think&#62;")) || { issue, svg };
  },
  async "commands use this template"(page) {
    await page.selectOption("#use", { label: "Python" });
    const python = await text(page, "#commands");
    await page.selectOption("#use", { label: "vLLM" });
    return (python.includes('eos_token="<|end|>"') && (await text(page, "#commands")).includes("--tool-call-parser unrender")) || python;
  },
  async "another template is compared with the one that was kept"(page) {
    await page.click("#keep");
    await page.selectOption("#example", { label: "Arguments in tags" });
    await settles(page, () => document.querySelector("#differences").textContent.includes("reasoning.start"));
    const sides = await page.$$eval("#differences .sides .piece", (pieces) => pieces.map((piece) => piece.textContent));
    return (sides.includes("<think>") && sides.includes("[/ASSISTANT]")) || sides;
  },
  async "a template is compared with a format in a file"(page) {
    const file = (text) => ({ name: "format.json", mimeType: "application/json", buffer: Buffer.from(text) });
    await page.setInputFiles("#kept-format", file('{"version": 0}'));
    await settles(page, () => document.querySelector("#differences").textContent.includes("version"));
    await page.click("#keep");
    await settles(page, () => document.querySelector("#differences").textContent.includes("the same format"));
    const shown = await page.evaluate(async () => {
      const asked = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ source: document.querySelector("#source").value }) };
      return (await (await fetch("ask/format", asked)).json()).format;
    });
    shown.turn.end = "<other>";
    await page.setInputFiles("#kept-format", file(JSON.stringify(shown)));
    await settles(page, () => document.querySelector("#differences").textContent.includes("<other>"));
    return (await text(page, "#differences")).includes("turn.end");
  },
  async "a link holds everything"(page) {
    const file = (name, text) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
    await page.setInputFiles("#recording", file("recorded.jsonl", '"Hello "\n"<b>there</b>"\n'));
    await page.selectOption("#dialect", "lark");
    await settles(page, () => document.querySelector("#grammar").textContent.includes("start:") && document.querySelector("#film").textContent.includes("there"));
    await page.focus("#time");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.click("#share");
    await settles(page, () => location.hash.startsWith("#v1="));
    const shown = () => [
      ...["source", "dialect", "time", "output", "example"].map((id) => document.querySelector(`#${id}`).value),
      ...["kept", "chunk-shown", "film", "differences"].map((id) => document.querySelector(`#${id}`).textContent),
    ];
    const mine = await page.evaluate(shown);
    const other = await open(page.url());
    await settles(other, () => document.querySelector("#differences td"));
    const same = await other.evaluate(shown);
    await other.close();
    return (JSON.stringify(mine) === JSON.stringify(same) && mine[2] === "1" && mine[6] === "as recorded") || { mine, same };
  },
  async "the address is kept current, and one that is pasted is shown"() {
    const page = await open();
    await page.selectOption("#example", { label: "Calls like Python" });
    await settles(page, () => location.hash.startsWith("#v1="));
    await page.reload();
    await settles(page, () => document.querySelector("#film .name")?.textContent === "get_weather");
    const chosen = await page.evaluate(() => document.querySelector("#example").selectedOptions[0].textContent);
    await page.evaluate((hash) => (location.hash = hash), linkOf({ source: "<a>{{ messages[0].content }}", messages: [{ role: "user", content: "Moon" }] }));
    await settles(page, () => document.querySelector("#prompt").textContent === "<a>Moon");
    const own = await page.evaluate(() => document.querySelector("#example").selectedOptions[0].textContent);
    await page.close();
    return (chosen === "Calls like Python" && own === "(your own)") || { chosen, own };
  },
  async "a link that cannot be used is named, and the page lives"() {
    const said = [];
    for (const hash of [linkOf({ source: "x", messages: [null] }), "#v1=AAAA", linkOf({ source: "x" }).slice(0, -4), linkOf([3]), linkOf({ source: "x".repeat(9e6) })]) {
      const page = await open(url + hash);
      await settles(page, () => document.querySelector("#explanation").textContent.includes("Everything was read."));
      said.push(await text(page, "#status"));
      await page.close();
    }
    return (said[0].includes("messages: expected a list of objects") && said.every((words) => words.startsWith("The link cannot be used: "))) || said;
  },
  async "a template that is pasted brings an answer that has everything"() {
    const page = await open();
    await page.fill("#source", (await page.inputValue("#source")).replaceAll("think>", "plan>"));
    await settles(page, () => document.querySelector("#film").textContent.startsWith("<plan>"));
    const roles = new Set(await page.$$eval("#film mark", (marks) => marks.map((mark) => mark.className)));
    await page.close();
    return ["reasoning", "content", "name", "argument"].every((role) => roles.has(role)) || [...roles];
  },
  async "nothing of the template before stays beside an error"() {
    const page = await open();
    await page.click("#verify");
    await page.fill("#source", "{% for m in messages %}{{ m.content }");
    await settles(page, () => document.querySelector("#status").classList.contains("bad") && !document.querySelector("[aria-busy]"));
    await page.waitForTimeout(500);
    const left = await page.$$eval("#engine, #markers table, #events, #deltas, #message, #explanation, #checks, #not-enforced, #evidence, #output", (found) => found.map((one) => one.textContent + (one.value ?? "")).join(""));
    const said = (await text(page, "body")).split(await text(page, "#status")).length - 1;
    await page.fill("#source", "{{ raise_exception('not today') }}");
    await settles(page, () => document.querySelector("#pictures").textContent.includes("no rendering succeeded"));
    const reason = await text(page, "#pictures");
    await page.close();
    return (left === "" && said === 2 && reason.includes("not today")) || { left, said, reason };
  },
  async "two hundred kilobytes are shown without lag, and what is coarser is said"(page) {
    await page.selectOption("#example", { index: 0 });
    await settles(page, () => document.querySelector("#film .name"));
    await page.fill("#output", `<think>${"thinking ".repeat(12000)}</think>${"words and words ".repeat(6400)}`);
    await settles(page, () => document.querySelector("#time-shown").textContent.startsWith("210"));
    // Other work on the machine slows both alike: a move of the slider is compared with laying out the bare text.
    const [move, bare] = await page.evaluate(() => {
      const time = document.querySelector("#time");
      const plain = document.body.appendChild(document.createElement("pre"));
      const text = document.querySelector("#output").value;
      const best = (action) => {
        const took = [0.25, 0.4, 0.5, 0.6, 0.75].map((part) => {
          const start = performance.now();
          action(part);
          void document.body.offsetHeight;
          return performance.now() - start;
        });
        return Math.min(...took);
      };
      const bare = best((part) => {
        plain.textContent = text.slice(0, -1 - Math.round(part * 100));
      });
      plain.remove();
      const move = best((part) => {
        time.value = String(Math.round(Number(time.max) * part));
        time.dispatchEvent(new Event("input"));
      });
      return [move, bare];
    });
    const coarse = (await text(page, "#time-shown")).includes("in chunks of 43");
    return (coarse && move < bare / 2 + 20) || `${move} ms a move; the bare text takes ${bare} ms`;
  },
  async "of very many calls the last are shown, and of a long one that is held back both ends"(page) {
    const show = async (text, time) => {
      await page.evaluate((given) => Object.assign(document.querySelector("#output"), { value: given }).dispatchEvent(new Event("input")), text);
      await settles(page, (length) => document.querySelector("#time-shown").textContent.includes(`of ${length} characters`), text.length);
      await page.evaluate((given) => Object.assign(document.querySelector("#time"), { value: given }).dispatchEvent(new Event("input")), String(time));
    };
    const call = (city) => `<tool_call>{"name": "get_weather", "arguments": {"city": "${city}"}}</tool_call>`;
    await show(call("Paris").repeat(2000), 5000);
    const calls = JSON.parse(await text(page, "#message")).tool_calls;
    await show(call("Paris ".repeat(30000)), 2500);
    const marks = await page.$$eval("#film .held, #film .beyond", (found) => found.map((one) => one.textContent.length));
    return (calls.length === 21 && calls[0] === "… 1980 calls …" && marks.length === 4 && Math.max(...marks) === 4000) || { calls: calls.length, first: calls[0], marks };
  },
  async "without a server the first example is there before Python is"() {
    const page = await browser.newPage();
    await page.goto(alone);
    const frame = page.frameLocator("iframe.playground");
    await frame.locator("#explanation .good").waitFor();
    const loading = await frame.locator("#loading").isVisible();
    const said = await frame.locator("#loading").textContent();
    await frame.locator("#status.bad", { hasText: "Python cannot be loaded: Error: gone" }).waitFor();
    await page.close();
    return (loading && said.includes("Loading Python: 14 MB")) || { loading, said };
  },
  async "in a frame it has the site's colours, address and height"() {
    const page = await browser.newPage();
    await page.goto(alone + linkOf({ source: "<a>{{ messages[0].content }}" }));
    const frame = page.frameLocator("iframe.playground");
    const ground = () => frame.locator("body").evaluate((body) => getComputedStyle(body).backgroundColor);
    await frame.locator("html[data-scheme=dark]").waitFor();
    const dark = await ground();
    const entered = await frame.locator("#source").inputValue();
    await page.evaluate(() => (document.body.dataset.mdColorScheme = "default"));
    await frame.locator("html[data-scheme=light]").waitFor();
    const light = await ground();
    await frame.locator("#example").selectOption({ label: "Calls like Python" });
    const old = page.url();
    await page.waitForURL((address) => address.href !== old && address.hash.startsWith("#v1="));
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await frame.locator("#share").click();
    await frame.locator("#status", { hasText: "The link is copied." }).waitFor();
    const copied = (await page.evaluate(() => navigator.clipboard.readText())) === page.url();
    await page.waitForFunction(() => document.querySelector("iframe").offsetHeight >= document.querySelector("iframe").contentDocument.body.offsetHeight);
    await page.close();
    return (copied && entered.startsWith("<a>") && dark === "rgb(20, 23, 27)" && light === "rgb(255, 255, 255)") || { copied, entered, dark, light };
  },
  async "text from outside is text"(page) {
    const evil = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 2</script>';
    await page.fill("#source", `{{ messages[0].content }}${evil}{{ raise_exception('${evil.replaceAll("'", "")}') }}`);
    await page.fill("#output", evil);
    await settles(page, () => document.querySelector("#status").textContent.includes("<img"));
    const made = await page.$$eval("img, main script", (elements) => elements.length);
    return (made === 0 && (await page.evaluate(() => window.hacked)) === undefined) || made;
  },
  async "a template that would run for ever is stopped"(page) {
    await page.fill("#source", "{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}");
    await settles(page, () => document.querySelector("#status").textContent.includes("the template"));
    return true;
  },
  async "a phone shows it without scrolling sideways"() {
    const page = await open(url, { viewport: { width: 390, height: 844 } });
    await page.click("#keep");
    await page.selectOption("#example", { label: "Calls like Python" });
    await settles(page, () => document.querySelector("#differences td"));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    await page.screenshot({ path: join(folder, "phone.png"), fullPage: true });
    await page.close();
    return wide <= 0 || `${wide} pixels too wide`;
  },
  async "the keyboard reaches every control, and the first key leads past the header"() {
    const page = await open();
    await page.keyboard.press("Tab");
    const first = await page.evaluate(() => document.activeElement.className);
    const seen = new Set();
    for (let count = 0; count < 80; count += 1) {
      seen.add(await page.evaluate(() => document.activeElement.id));
      await page.keyboard.press("Tab");
    }
    await page.close();
    const missing = ["example", "share", "source", "verify", "add", "tools", "output", "sample", "chunk", "time", "play", "dialect", "keep"].filter((id) => !seen.has(id));
    return (first === "skip" && missing.length === 0) || { first, missing };
  },
};

async function accessible(colorScheme) {
  const page = await open(url, { colorScheme });
  await page.click("#pictures button");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  await page.screenshot({ path: join(folder, `${colorScheme}.png`), fullPage: true });
  await page.close();
  const found = violations.filter((item) => ["serious", "critical"].includes(item.impact));
  return found.length === 0 || found.map((item) => `${item.id}: ${item.nodes.map((node) => node.target).join(" ")}`);
}
for (const scheme of ["light", "dark"]) checks[`axe finds nothing serious: ${scheme}`] = () => accessible(scheme);
checks["the console stays empty"] = async () => complaints.length === 0 || complaints;

const page = await open();
for (const [name, check] of Object.entries(checks)) {
  let found;
  try {
    found = await check(page);
  } catch (error) {
    found = String(error).slice(0, 500);
  }
  console.log(JSON.stringify({ name, held: found === true, found }));
}
await browser.close();
