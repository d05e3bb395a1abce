// Checks the documentation site in a real Chromium, as readers use it. Prints one line of JSON for each check.
//
//   node site.mjs URL CHROMIUM FOLDER DISK     URL serves the site, and DISK is its file URL; FOLDER contains node_modules and
//                                              gets the screenshots

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [url, executablePath, folder, disk] = process.argv.slice(2);
const need = createRequire(join(folder, "package.json"));
const { chromium } = need("playwright-core");
const axe = readFileSync(need.resolve("axe-core/axe.min.js"), "utf8");
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const browser = await chromium.launch({ executablePath, headless: true, args: QUIET });
const complaints = [];
const strangers = new Set();

async function open(address, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 }, ...options });
  page.on("pageerror", (error) => complaints.push(`${address}: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`${address}: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (![url, disk, "data:", "blob:", "about:"].some((start) => request.url().startsWith(start))) strangers.add(request.url());
  });
  await page.goto(address);
  return page;
}

const picture = (page, name) => page.screenshot({ path: join(folder, `site-${name}.png`) });

async function searched(start) {
  const page = await open(`${start}index.html`);
  await page.click('input[name="query"]');
  await page.keyboard.type("training masks", { delay: 20 });
  const found = page.locator('.md-search-result__link[href*="howto/training-masks.html"]').first();
  await found.waitFor({ timeout: 60_000 });
  await found.click();
  await page.waitForURL("**/howto/training-masks.html*");
  const title = await page.textContent("h1");
  await page.close();
  return title.startsWith("Train on conversations") || title;
}

const checks = {
  async "the playground on its page reads what is typed"() {
    const page = await open(`${url}playground.html`);
    const frame = page.frameLocator("iframe.playground");
    await frame.locator("#verify.good").waitFor({ timeout: 120_000 });
    await picture(page, "playground");
    await frame.locator("#output").fill("<think>hm</think>Hello");
    await frame.locator("#message", { hasText: "Hello" }).waitFor({ timeout: 120_000 });
    const rows = await frame.locator("#message").innerText();
    await page.close();
    return rows.replace(/\s+/g, " ").startsWith("reasoning hm content Hello") || rows;
  },
  async "the playground fills its page, below the header"() {
    const found = [];
    for (const [width, height] of [[1440, 900], [390, 844]]) {
      const page = await open(`${url}playground.html`, { viewport: { width, height } });
      const frame = page.locator("iframe.playground");
      await page.frameLocator("iframe.playground").locator("#verdict", { hasText: "Parsed" }).waitFor({ timeout: 120_000 });
      const { x, y, width: wide, height: high } = await frame.boundingBox();
      const bottom = await page.evaluate(() => Math.max(...[...document.querySelectorAll(".md-header, .md-tabs")].map((one) => one.getBoundingClientRect().bottom)));
      const inside = await page.frameLocator("iframe.playground").locator("html").evaluate((root) => root.scrollWidth - innerWidth);
      found.push({ x, above: y - bottom, beside: width - wide, below: height - y - high, inside });
      await page.close();
    }
    const [desktop, phone] = found;
    const close = [desktop.x, desktop.above, desktop.beside, desktop.below, phone.x, phone.above, phone.beside].every((pixels) => Math.abs(pixels) <= 2);
    return (close && found.every(({ inside }) => inside <= 0)) || found;
  },
  async "the search finds a page"() {
    return searched(url);
  },
  async "the search finds a page of a site that is read from the disk"() {
    return searched(disk);
  },
  async "the search finds what users look for"() {
    const pages = { "json mode": "howto/constrain.html", prefill: "howto/recipes.html", "tool_calls empty": "howto/debug.html", base_url: "howto/serve.html" };
    const found = {};
    for (const [words, expected] of Object.entries(pages)) {
      const page = await open(`${url}index.html`);
      await page.click('input[name="query"]');
      await page.keyboard.type(words, { delay: 20 });
      await page.locator(".md-search-result__link").first().waitFor({ timeout: 60_000 });
      await page.waitForTimeout(500);
      const links = await page.$$eval(".md-search-result__link", (all) => all.slice(0, 3).map((link) => link.getAttribute("href")));
      if (!links.some((link) => link.includes(expected))) found[words] = links;
      await page.close();
    }
    return Object.keys(found).length === 0 || found;
  },
  async "a link to a member unfolds its class"() {
    const page = await open(`${url}reference/api/unrender.html#unrender.Turn.stream`);
    await page.locator('[id="unrender.Turn.stream"]').waitFor({ state: "visible" });
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.close();
    return height < 16_000 || height;
  },
  async "the film shows another model"() {
    const page = await open(`${url}index.html`);
    const before = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.selectOption(".home-bar select", { label: "MiniMax M3" });
    const shown = await page.locator(".home-take", { hasText: "<mm:think>" }).isVisible();
    const after = await page.evaluate(() => document.documentElement.scrollHeight);
    await page.close();
    return (shown && before === after) || { shown, before, after };
  },
  async "the search finds no sources"() {
    const page = await open(`${url}index.html`);
    await page.click('input[name="query"]');
    await page.keyboard.type("kubernetes", { delay: 20 });
    await page.locator('.md-search-result__link[href*="howto/serve-operations.html"]').first().waitFor({ timeout: 60_000 });
    const found = await page.$$eval(".md-search-result__link", (links) => links.map((link) => link.getAttribute("href")));
    await page.close();
    return !found.some((address) => address.includes("source/")) || found;
  },
  async "what is copied of a session is what was typed"() {
    const page = await open(`${url}tutorial.html`, { permissions: ["clipboard-read", "clipboard-write"] });
    const copied = [];
    for (const session of [".language-pycon", ".language-console"]) {
      const block = page.locator(session).first();
      await block.hover();
      await block.locator("button").first().click();
      await page.waitForTimeout(200);
      copied.push(await page.evaluate(() => navigator.clipboard.readText()));
    }
    await page.close();
    return copied.join("|") === "turn.prompt[-44:]\nturn.stop|unrender inspect chat_template.jinja" || copied;
  },
  async "the gallery is filtered while you type"() {
    const page = await open(`${url}gallery.html`);
    const rows = page.locator(".entry[data-chips]:not([data-chips=''])");
    const before = await rows.filter({ visible: true }).count();
    await page.locator(".filter input").pressSequentially("<tool_call>");
    const texts = await rows.filter({ visible: true }).allTextContents();
    await page.goto(`${url}gallery.html#openai-gpt-oss-120b`);
    await page.reload();
    const led = await page.locator("#openai-gpt-oss-120b").isVisible();
    await page.close();
    return (before === 0 && texts.length > 5 && texts.every((text) => text.includes("<tool_call>")) && led) || { before, texts, led };
  },
  async "no page is wider than a phone"() {
    const start = await open(`${url}howto/stream.html`);
    const links = await start.$$eval(".md-nav a[href]", (found) => found.map((link) => link.href.split("#")[0]));
    await start.close();
    const page = await open(`${url}index.html`, { viewport: { width: 390, height: 844 } });
    await picture(page, "phone");
    const wide = [];
    for (const link of new Set(links)) {
      await page.goto(link, { waitUntil: "domcontentloaded" });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) wide.push(`${link}: ${over} pixels`);
    }
    await page.close();
    return (wide.length === 0 && new Set(links).size > 50) || { wide, links: new Set(links).size };
  },
};

async function accessible(path, colorScheme) {
  const page = await open(url + path, { colorScheme });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  await picture(page, `${path.replaceAll("/", "-")}-${colorScheme}`);
  await page.close();
  return violations.length === 0 || violations.map((item) => `${item.id}: ${item.nodes.slice(0, 5).map((node) => `${node.target} ${node.failureSummary.slice(0, 200)}`).join(" ")}`);
}
for (const [path, scheme] of [["index.html", "light"], ["index.html", "dark"], ["gallery.html", "dark"], ["reference/api/unrender.html", "light"], ["howto/debug.html", "dark"]])
  checks[`axe finds nothing: ${path} ${scheme}`] = () => accessible(path, scheme);
checks["nothing is asked of another site"] = async () => strangers.size === 0 || [...strangers];
checks["the console stays empty"] = async () => complaints.length === 0 || complaints;

for (const [name, check] of Object.entries(checks)) {
  let found;
  try {
    found = await check();
  } catch (error) {
    found = String(error).slice(0, 500);
  }
  console.log(JSON.stringify({ name, held: found === true, found }));
}
await browser.close();
