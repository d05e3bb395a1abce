// Uses the playground as a person does, with mouse and keyboard, in a real Chromium; one line of JSON for each check.
//
//   node playground.mjs URL CHROMIUM FOLDER     FOLDER holds node_modules, and takes the pictures

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [url, executablePath, folder] = process.argv.slice(2);
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
    await page.click("#play");
    await settles(page, () => document.querySelector("#time").value === document.querySelector("#time").max);
    return (await text(page, "#message")).includes("Hello");
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
  async "a format is proved"(page) {
    await page.click("#prove");
    await settles(page, () => document.querySelectorAll("#proof td.good").length > 3);
    return (await page.$$("#proof td.bad")).length === 0;
  },
  async "another template is compared with the one that was kept"(page) {
    await page.click("#keep");
    await page.selectOption("#example", { index: 1 });
    await settles(page, () => document.querySelector("#differences").textContent.includes("reasoning.start"));
    return true;
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
    await page.fill("#output", "Hello <b>there</b>");
    await page.click("#share");
    await settles(page, () => location.hash.startsWith("#v1="));
    const other = await open(page.url());
    await settles(other, () => document.querySelector("#film").textContent === "Hello <b>there</b>");
    const same = (await other.inputValue("#source")) === (await page.inputValue("#source"));
    await other.close();
    return same;
  },
  async "a hundred kilobytes are shown without lag"(page) {
    await page.selectOption("#example", { index: 0 });
    await settles(page, () => document.querySelector("#film .name"));
    await page.fill("#output", `<think>${"thinking ".repeat(6000)}</think>${"words and words ".repeat(3200)}`);
    await settles(page, () => document.querySelector("#time-shown").textContent.startsWith("105"));
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
    return move < 4 * bare + 20 || `${move} ms a move; the bare text takes ${bare} ms`;
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
    const missing = ["example", "share", "source", "prove", "add", "tools", "output", "sample", "chunk", "time", "play", "dialect", "keep"].filter((id) => !seen.has(id));
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
