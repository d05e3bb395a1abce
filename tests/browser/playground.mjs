// Checks the playground with mouse and keyboard in a real Chromium. Prints one line of JSON for each check.
//
//   node playground.mjs URL CHROMIUM FOLDER ALONE     FOLDER contains node_modules and gets the screenshots; ALONE is a page with the
//                                                     playground in a frame, without a server, and whose Python can't be loaded

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
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, ...options });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(address);
  await page.waitForFunction(() => document.querySelector("#verdict").textContent && document.querySelector("#pictures button"), null, { timeout: 90_000 });
  return page;
}

/** Return the coloured parts of the output as `role=text`, in order. With `role`, return only the texts of that role. */
const coloured = (page, role = "") =>
  page.evaluate((one) => {
    const roles = one ? [one] : ["reasoning", "content", "marker", "name", "argument", "id", "malformed", "held"];
    const found = roles.flatMap((name) => [...(CSS.highlights.get(name) ?? [])].map((range) => {
      const whole = new Range();
      whole.setStart(range.startContainer, range.startOffset);
      whole.setEnd(range.endContainer, range.endOffset);
      return [whole, one ? whole.toString() : `${name}=${whole.toString()}`];
    }));
    return found.sort(([a], [b]) => a.compareBoundaryPoints(Range.START_TO_START, b)).map(([, said]) => said);
  }, role);
const message = (page) => page.$$eval("#message dt", (terms) => Object.fromEntries(terms.map((term) => [term.textContent, term.nextElementSibling.textContent])));
const parsed = (page) => settles(page, () => document.querySelector("#verdict").textContent === "Parsed, no problems");

/** Return the part of a URL that contains a state of the page, as the page packs it. */
const linkOf = (state) => `#v1=${deflateRawSync(JSON.stringify(state)).toString("base64url")}`;
const text = (page, selector) => page.textContent(selector);
const settles = (page, test, given) => page.waitForFunction(test, given, { timeout: 60_000 });

const checks = {
  async "a part leads to the renderings that show it"(page) {
    await page.click('#pictures button:has-text("<think>")');
    const shown = await page.$$eval("#sheet[open] .only", (marks) => marks.map((mark) => mark.textContent));
    await page.keyboard.press("Escape");
    return shown.some((words) => words.startsWith("<think>")) || shown;
  },
  async "an output that is typed is read"(page) {
    await page.focus("#output");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("<think>hm</think>Hello");
    await settles(page, () => document.querySelector("#message").textContent.includes("Hello"));
    const roles = await coloured(page);
    return roles.join(" ") === "marker=<think> reasoning=hm marker=</think> content=Hello" || roles;
  },
  async "time runs back by keyboard, and shows what is held back"(page) {
    await page.focus("#time");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    const found = [await coloured(page), await message(page), await text(page, "#time-shown")];
    return JSON.stringify(found) === '[["held=<thi"],{},"4 / 22 characters · 4 buffered"]' || found;
  },
  async "time plays to its end"(page) {
    await page.focus("#time");
    await page.keyboard.press("Home");
    await page.click("#play");
    const named = [await page.getAttribute("#play", "aria-label"), await page.getAttribute("#time-shown", "aria-live")];
    await settles(page, () => document.querySelector("#time").value === document.querySelector("#time").max);
    await settles(page, () => document.querySelector("#play").ariaLabel === "Play");
    return ((await message(page)).content === "Hello" && named.join() === "Pause,off") || named;
  },
  async "an answer is sampled and read"(page) {
    const before = await page.inputValue("#output");
    await page.click("#sample");
    await settles(page, (old) => document.querySelector("#output").value !== old, before);
    await parsed(page);
    return true;
  },
  async "each dialect is written"(page) {
    const found = [];
    await page.click("#tab-grammar");
    for (const [dialect, sign] of [["lark", "start:"], ["structural-tag", '"type": "structural_tag"'], ["gbnf", "root ::="]]) {
      await page.selectOption("#dialect", dialect);
      await settles(page, (words) => document.querySelector("#grammar").textContent.includes(words), sign);
      found.push(dialect);
    }
    return found.length === 3;
  },
  async "a message is added, and the prompt shows what the model wrote"(page) {
    await page.click("#request summary");
    await page.click("#tab-prompt");
    await page.click("#add");
    await page.keyboard.type("Wonderful.");
    await settles(page, () => [...document.querySelectorAll("#prompt .written")].some((mark) => mark.textContent.includes("Wonderful.")));
    await page.click('button[aria-label="Remove message 2"]');
    return (await page.$$("#messages li")).length === 1;
  },
  async "markers in a forged conversation stay text"(page) {
    await page.click("#attack");
    await settles(page, () => document.querySelectorAll("#prompt .of-user.forged").length > 1);
    await page.click('button[aria-label="Remove message 2"]');
    return (await page.$$("#messages li")).length === 1;
  },
  async "checks are made when an example is chosen, else on demand, and leave with their template"(page) {
    await page.selectOption("#example", { label: "Qwen3" });
    await settles(page, () => document.querySelector("#verify.good"));
    await page.click("#verify");
    const rows = await page.$$("#sheet[open] td.good");
    await page.keyboard.press("Escape");
    await page.fill("#source", (await page.inputValue("#source")).replaceAll("think>", "plan>"));
    await settles(page, () => document.querySelector("#pictures").textContent.includes("<plan>"));
    const left = await text(page, "#verify");
    await page.click("#verify");
    await settles(page, () => document.querySelector("#verify").textContent.startsWith("Verifying "));
    await settles(page, () => document.querySelector("#verify.good"));
    return (rows.length > 20 && left === "Verify") || { rows: rows.length, left };
  },
  async "pointing at the output shows its event, its part of the format and its line"(page) {
    await page.selectOption("#example", { label: "Qwen3" });
    await settles(page, () => document.querySelector("#output").value.startsWith("<think>"));
    await parsed(page);
    await page.click("#tab-events");
    const [x, y] = await page.evaluate(() => {
      const [range] = CSS.highlights.get("name");
      const whole = new Range();
      whole.setStart(range.startContainer, range.startOffset + 3);
      whole.setEnd(range.endContainer, range.endOffset);
      const { x, y, height } = whole.getBoundingClientRect();
      return [x, y + height / 2];
    });
    await page.mouse.move(x, y);
    const joined = await page.$$eval(".joined", (found) => found.map((one) => `${one.tagName}=${one.textContent}`));
    const there = await coloured(page, "joined");
    const want = ["BUTTON=name", "LI=ToolCallStarted", "DIV={%- for call in message.tool_calls"].every((item) => joined.some((one) => one.startsWith(item)));
    await page.hover('#pictures button:has-text("<tool_call>")');
    const back = await coloured(page, "joined");
    await page.focus('#pictures button:has-text("reasoning")');
    const focused = await coloured(page, "joined");
    const right = there.join() === "get_weather" && back.some((one) => one.includes("<tool_call>")) && focused.join().startsWith("They ask");
    return (want && right) || { joined, there, back, focused };
  },
  async "the caret in the template marks what its line writes, and bars mark the lines"(page) {
    await page.click("#source");
    await page.evaluate(() => {
      const source = document.querySelector("#source");
      source.setSelectionRange(source.value.indexOf("<think>"), source.value.indexOf("<think>"));
    });
    await page.keyboard.press("Shift");
    const joined = await page.$$eval("#pictures .joined", (found) => found.map((one) => one.textContent));
    const bars = await page.$$eval(".bars", (found) => found.map((one) => [...one.children].map((bar) => bar.className).join("+")));
    return (joined.join() === "<think>↵,reasoning,↵</think>" && bars.join() === "reasoning,content,name+argument,marker,marker") || { joined, bars };
  },
  async "a bug report and a picture are taken along"(page) {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.click("#issue");
    await settles(page, () => document.querySelector("#status").textContent.startsWith("Bug report copied"));
    const issue = await page.evaluate(() => navigator.clipboard.readText());
    const [saved] = await Promise.all([page.waitForEvent("download"), page.click("#picture")]);
    const svg = readFileSync(await saved.path(), "utf8");
    const good = ["**Template**", "```jinja", "**Message**", "get_weather"].every((words) => issue.includes(words));
    return (good && svg.startsWith("<svg ") && svg.includes("&#60;think&#62;")) || { issue, svg };
  },
  async "commands use this template"(page) {
    await page.click("#tab-code");
    await page.click("#tokens summary");
    await page.fill("#eos_token", "<|end|>");
    await settles(page, () => document.querySelector("#commands").textContent.includes("<|end|>"));
    await page.selectOption("#use", { label: "Python" });
    const python = await text(page, "#commands");
    await page.selectOption("#use", { label: "vLLM" });
    return (python.includes('eos_token="<|end|>"') && (await text(page, "#commands")).includes("--tool-call-parser unrender")) || python;
  },
  async "another template is compared with the one that was kept"(page) {
    await page.selectOption("#example", { label: "Qwen3" });
    await page.click("#comparing");
    await page.click("#keep");
    await page.keyboard.press("Escape");
    await page.selectOption("#example", { label: "Qwen3 Coder" });
    await settles(page, () => document.querySelector("#differences").textContent.includes("reasoning.start"));
    const sides = await page.$$eval("#differences .sides .piece", (pieces) => pieces.map((piece) => piece.textContent));
    return (sides.includes("<think>↵") && sides.includes("<function=")) || sides;
  },
  async "a template is compared with a format in a file"(page) {
    const file = (text) => ({ name: "format.json", mimeType: "application/json", buffer: Buffer.from(text) });
    await page.setInputFiles("#kept-format", file('{"version": 0}'));
    await settles(page, () => document.querySelector("#status").textContent.includes("format.version: 0 is not supported"));
    await page.click("#comparing");
    await page.click("#keep");
    await page.keyboard.press("Escape");
    await settles(page, () => document.querySelector("#differences").textContent.includes("No differences"));
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
    await page.click("#tab-grammar");
    await page.selectOption("#dialect", "lark");
    await settles(page, () => document.querySelector("#grammar").textContent.includes("start:") && document.querySelector("#time-shown").textContent.startsWith("18 / 18"));
    await page.focus("#time");
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await page.click("#share");
    await settles(page, () => location.hash.startsWith("#v1="));
    const shown = () => [
      ...["source", "dialect", "time", "output", "example"].map((id) => document.querySelector(`#${id}`).value),
      ...["kept", "time-shown", "differences"].map((id) => document.querySelector(`#${id}`).textContent),
    ];
    const mine = await page.evaluate(shown);
    const other = await open(page.url());
    await settles(other, () => document.querySelector("#differences td"));
    const same = await other.evaluate(shown);
    await other.close();
    return (JSON.stringify(mine) === JSON.stringify(same) && mine[2] === "1" && mine[6].startsWith("6 / 18")) || { mine, same };
  },
  async "the address is kept current, and one that is pasted is shown"() {
    const page = await open();
    await page.selectOption("#example", { label: "Llama 3.3" });
    await settles(page, () => location.hash.startsWith("#v1="));
    await page.reload();
    await settles(page, () => document.querySelector("#message").textContent.includes("get_weather"));
    const chosen = await page.evaluate(() => document.querySelector("#example").selectedOptions[0].textContent);
    await page.evaluate((hash) => (location.hash = hash), linkOf({ source: "<a>{{ messages[0].content }}", messages: [{ role: "user", content: "Moon" }] }));
    await settles(page, () => document.querySelector("#prompt").textContent === "<a>Moon");
    const own = await page.evaluate(() => document.querySelector("#example").selectedOptions[0].textContent);
    await page.close();
    return (chosen === "Llama 3.3" && own === "Paste your own…") || { chosen, own };
  },
  async "a link that cannot be used is named, and the page lives"() {
    const said = [];
    for (const hash of [linkOf({ source: "x", messages: [null] }), "#v1=AAAA", linkOf({ source: "x" }).slice(0, -4), linkOf([3]), linkOf({ source: "x".repeat(9e6) })]) {
      const page = await open(url + hash);
      await parsed(page);
      said.push(await text(page, "#status"));
      await page.close();
    }
    return (said[0].includes("messages: expected a list of objects") && said.every((words) => words.startsWith("The link cannot be used: "))) || said;
  },
  async "a template that is pasted brings an answer that has everything"() {
    const page = await open();
    await page.fill("#source", (await page.inputValue("#source")).replaceAll("think>", "plan>"));
    await settles(page, () => document.querySelector("#output").value.startsWith("<plan>"));
    await settles(page, () => CSS.highlights.get("name").size);
    const roles = new Set((await coloured(page)).map((said) => said.split("=")[0]));
    await page.close();
    return ["reasoning", "content", "name", "argument"].every((role) => roles.has(role)) || [...roles];
  },
  async "nothing of the template before stays beside an error, or without a template"() {
    const page = await open();
    const left = () => page.$$eval("#facts, #engine, #events, #deltas, #message, #verdict, #not-enforced, #output, .bars", (found) => found.map((one) => one.textContent + (one.value ?? "")).join(""));
    const quiet = () => settles(page, () => !document.querySelector("[aria-busy]"));
    await page.fill("#source", "{% for m in messages %}{{ m.content }");
    await settles(page, () => document.querySelector("#status").classList.contains("bad"));
    await quiet();
    await page.waitForTimeout(500);
    const broken = await left();
    await page.fill("#source", "{{ raise_exception('not today') }}");
    await settles(page, () => document.querySelector("#pictures").textContent.includes("no rendering succeeded"));
    const reason = await text(page, "#pictures");
    await page.selectOption("#example", { label: "Paste your own…" });
    await settles(page, () => !document.querySelector("#status").classList.contains("bad"));
    await quiet();
    const empty = (await left()) + (await page.evaluate(() => document.activeElement.id));
    await page.close();
    return (broken === "" && reason.includes("not today") && empty === "source") || { broken, reason, empty };
  },
  async "two hundred kilobytes are shown without lag, and what is coarser is said"(page) {
    await page.selectOption("#example", { label: "Qwen3" });
    await page.click("#tab-message");
    await parsed(page);
    await page.fill("#output", `<think>${"thinking ".repeat(12000)}</think>${"words and words ".repeat(6400)}`);
    await settles(page, () => document.querySelector("#time-shown").textContent.startsWith("2104"));
    // A move of the slider is compared with laying out the bare text, since other load slows both down equally.
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
    const coarse = (await text(page, "#time-shown")).includes("chunks of 43");
    return (coarse && move < bare / 2 + 20) || `${move} ms a move; the bare text takes ${bare} ms`;
  },
  async "of very many calls the last are shown, and one that is held back is coloured"(page) {
    const show = async (text, time) => {
      await page.evaluate((given) => Object.assign(document.querySelector("#output"), { value: given }).dispatchEvent(new Event("input")), text);
      await settles(page, (length) => document.querySelector("#time-shown").textContent.includes(`/ ${length} characters`), text.length);
      await page.evaluate((given) => Object.assign(document.querySelector("#time"), { value: given }).dispatchEvent(new Event("input")), String(time));
    };
    const call = (city) => `<tool_call>{"name": "get_weather", "arguments": {"city": "${city}"}}</tool_call>`;
    await show(call("Paris").repeat(2000), 5000);
    const calls = await page.$$eval("#message dd", (found) => found.slice(0, 2).map((one) => one.textContent));
    await show(call("Paris ".repeat(30000)), 2500);
    const [held] = await coloured(page, "held");
    return (calls[0] === "… 1980 calls …" && calls[1].startsWith("get_weather") && held.length > 80_000) || { calls, held: held?.length };
  },
  async "without a server the first example is there before Python is"() {
    const page = await browser.newPage();
    await page.goto(alone);
    const frame = page.frameLocator("iframe.playground");
    await frame.locator("#verdict", { hasText: "Parsed, no problems" }).waitFor();
    await frame.locator("#verify.good").waitFor();
    await frame.locator("#status", { hasText: "Loading Python (14 MB, first visit only)." }).waitFor();
    await frame.locator("#status.bad", { hasText: "Couldn't download Python. The examples work; to edit, run `unrender playground`." }).waitFor();
    await frame.locator("#example").selectOption({ label: "Gemma 4" });
    await frame.locator("#message", { hasText: "get_weather" }).waitFor();
    await page.close();
    return true;
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
    await frame.locator("#example").selectOption({ label: "Llama 3.3" });
    const old = page.url();
    await page.waitForURL((address) => address.href !== old && address.hash.startsWith("#v1="));
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await frame.locator("#share").click();
    await frame.locator("#status", { hasText: "Link copied." }).waitFor();
    const copied = (await page.evaluate(() => navigator.clipboard.readText())) === page.url();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForFunction(() => document.querySelector("iframe").offsetHeight >= document.querySelector("iframe").contentDocument.body.offsetHeight);
    await page.close();
    return (copied && entered.startsWith("<a>") && dark === "rgb(20, 23, 27)" && light === "rgb(255, 255, 255)") || { copied, entered, dark, light };
  },
  async "a mistake in the template is shown once"() {
    const page = await open();
    await page.fill("#source", "{% for m in messages %}{{ m.content }");
    await settles(page, () => document.querySelector("#pictures .bad") && !document.querySelector("[aria-busy]"));
    const said = await text(page, "#pictures .bad");
    const shown = await page.evaluate((words) => document.body.innerText.split(words).length - 1, said);
    await page.close();
    return shown === 1 || { said, shown };
  },
  async "nothing moves while a format is verified"() {
    const page = await open();
    const top = () => page.evaluate(() => document.querySelector("#h-output").getBoundingClientRect().top);
    await page.selectOption("#example", { label: "GLM 4.7" });
    await settles(page, () => document.querySelector("#verify").textContent.startsWith("Verifying"));
    const during = await top();
    await settles(page, () => document.querySelector("#verify").classList.contains("good"));
    const after = await top();
    await page.close();
    return during === after || { during, after };
  },
  async "an example has the model's own format until its template is edited"() {
    const page = await open();
    const format = async () => {
      await page.click("#json");
      const shown = JSON.parse(await text(page, "#sheet pre"));
      await page.keyboard.press("Escape");
      return shown;
    };
    const own = await format();
    await page.fill("#source", (await page.inputValue("#source")).replaceAll("think>", "plan>"));
    await settles(page, () => document.querySelector("#pictures").textContent.includes("<plan>"));
    const edited = await format();
    await page.close();
    return (own.turn.headers[0] === "<|im_start|>assistant\n" && JSON.stringify(edited).includes("<plan>")) || { own, edited };
  },
  async "text from outside is text"(page) {
    const evil = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 2</script>';
    await page.fill("#source", `{{ messages[0].content }}${evil}{{ raise_exception('${evil.replaceAll("'", "")}') }}`);
    await page.fill("#output", evil);
    await settles(page, () => document.querySelector("#pictures").textContent.includes("<img"));
    const made = await page.$$eval("img, main script", (elements) => elements.length);
    return (made === 0 && (await page.evaluate(() => window.hacked)) === undefined) || made;
  },
  async "a template that would run for ever is stopped"(page) {
    await page.fill("#source", "{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}");
    await settles(page, () => document.querySelector("#pictures .bad")?.textContent.includes("the template"));
    return true;
  },
  async "a desktop shows it on one screen, painted within a second"() {
    const page = await open();
    const over = await page.evaluate(() => [document.documentElement.scrollHeight - innerHeight, document.documentElement.scrollWidth - innerWidth]);
    const bottom = await page.evaluate(() => Math.max(...[...document.querySelectorAll("header, #side, section")].map((one) => one.getBoundingClientRect().bottom)) - innerHeight);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    await page.close();
    return (over.every((pixels) => pixels <= 0) && bottom <= 0 && paint < 1000) || { over, bottom, paint };
  },
  async "a phone shows it without scrolling sideways, the template last and folded"() {
    const page = await open(url, { viewport: { width: 390, height: 844 } });
    const order = await page.evaluate(() => ["example", "pictures", "output", "message", "template"].map((id) => document.getElementById(id).getBoundingClientRect().top));
    const folded = !(await page.locator("#source").isVisible());
    const wide = [];
    for (const label of await page.$$eval("#example option", (options) => options.map((option) => option.label))) {
      await page.selectOption("#example", { label });
      if (label !== "Paste your own…") await settles(page, () => document.querySelector("#note").textContent && !document.querySelector("[aria-busy]"));
      for (const tab of await page.$$("[role=tab]")) {
        await tab.click();
        wide.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
      }
    }
    await page.screenshot({ path: join(folder, "phone.png"), fullPage: true });
    await page.close();
    return (Math.max(...wide) <= 0 && folded && order.every((top, index) => !index || top > order[index - 1])) || { wide, order, folded };
  },
  async "the keyboard alone is enough"() {
    const page = await open();
    await page.keyboard.press("Tab");
    const first = await page.evaluate(() => document.activeElement.className);
    const seen = new Set();
    for (let count = 0; count < 80; count += 1) {
      const id = await page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
      if (!seen.has(id) && ["Messages and tools", "Special tokens"].includes(id.trim())) await page.keyboard.press("Enter");
      seen.add(id);
      await page.keyboard.press("Tab");
    }
    const controls = ["example", "file", "share", "issue", "theme", "source", "add", "tools", "bos_token", "verify", "json", "comparing", "output", "sample", "recording", "chunk", "time", "play", "tab-message"];
    const missing = controls.filter((id) => !seen.has(id));
    await page.focus("#tab-message");
    for (const key of ["ArrowLeft", "ArrowLeft"]) await page.keyboard.press(key);
    const tab = await page.evaluate(() => [document.activeElement.id, document.querySelector("[role=tabpanel]:not([hidden])").id]);
    await page.focus("#pictures button");
    await page.keyboard.press("Enter");
    const opened = await page.isVisible("#sheet");
    await page.keyboard.press("Escape");
    const back = await page.evaluate(() => document.activeElement.closest("#pictures") !== null);
    await page.close();
    return (first === "skip" && missing.length === 0 && tab.join() === "tab-grammar,panel-grammar" && opened && back) || { first, missing, tab, opened, back };
  },
};

async function accessible(colorScheme) {
  const page = await open(url, { colorScheme });
  await page.screenshot({ path: join(folder, `${colorScheme}.png`) });
  await page.evaluate(axe);
  const violations = [];
  for (const summary of ["#request summary", "#tokens summary"]) await page.click(summary);
  for (const place of ["#tab-message", "#tab-events", "#tab-deltas", "#tab-prompt", "#tab-grammar", "#tab-code", "#pictures button"]) {
    await page.click(place);
    violations.push(...(await page.evaluate(() => window.axe.run())).violations);
  }
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
