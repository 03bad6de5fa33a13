// speedscope.mjs VIEWERS FILE PICTURE TEXT…: opens a profile in the real speedscope in a headless chromium, takes a
// picture, and fails unless every TEXT (names of profiles) shows and speedscope reports no error.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, extname, join, resolve } from "node:path";

const [viewers, file, picture, ...texts] = process.argv.slice(2);
const require = createRequire(resolve(viewers, "package.json"));
const { chromium } = require("playwright-core");
const release = join(viewers, "node_modules/speedscope/dist/release");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };

const server = createServer((request, response) => {
  const name = basename(new URL(request.url, "http://x").pathname) || "index.html";
  try {
    const bytes = readFileSync(name === "profile.json" ? file : join(release, name));
    response.setHeader("Content-Type", types[extname(name)] ?? "application/octet-stream");
    response.end(bytes);
  } catch {
    response.statusCode = 404;
    response.end();
  }
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const at = `http://127.0.0.1:${server.address().port}/`;

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 800 } });
const errors = [];
page.on("pageerror", (error) => errors.push(String(error)));
page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
await page.goto(`${at}index.html#profileURL=${encodeURIComponent(at + "profile.json")}`);
await page.waitForFunction(() => document.body.innerText.includes("Left Heavy"), null, { timeout: 60000 });
await page.getByText("Sandwich").first().click();  // a table of frame names: flame graphs are drawn, not written
await page.waitForTimeout(1500);
await page.screenshot({ path: picture });
const shown = await page.evaluate(() => document.body.innerText);
await page.getByText("Left Heavy").first().click();
await page.waitForTimeout(1500);
await page.screenshot({ path: picture.replace(".png", ".flame.png") });
await browser.close();
server.close();
const missing = texts.filter((text) => !shown.includes(text));
const serious = errors.filter((text) => !text.includes("404"));
if (missing.length > 0 || serious.length > 0) {
  console.error(`speedscope: missing ${JSON.stringify(missing)}, errors ${JSON.stringify(serious)}`);
  console.error(shown.slice(0, 2000));
  process.exit(1);
}
console.log(`speedscope ${readFileSync(join(release, "release.txt"), "utf8").split("\n")[0]}: ${texts.length} names shown`);
process.exit(0);
