// The page in a real browser: node run.mjs BUILD OUT [NAME=FILE.html…]
// Without files, pages are made with the program in BUILD. Screenshots are left in OUT. Exit status 1 with every problem
// in words, 77 where there is no browser.
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import * as checks from "./checks.mjs";
import * as pictures from "../pictures_checks.mjs";
import { makePages } from "./pages.mjs";
import { useIt } from "./use.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const [build, out, ...given] = process.argv.slice(2);
const executablePath = [process.env.LLMPROF_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
  .find((path) => path && existsSync(path));
if (!executablePath) {
  console.error("browser.page: no chromium; tools/setup.sh installs it");
  process.exit(77);
}
mkdirSync(out, { recursive: true });
function pagesToOpen() {
  if (given.length) return given.map((word) => ({ name: word.split("=")[0], file: resolve(word.split("=")[1]), filled: [] }));
  try {
    return makePages(resolve(build), root, resolve(out));
  } catch (error) {
    console.error(`browser.page: ${error.message}`);
    process.exit(1);
  }
}
const pages = pagesToOpen();

const looks = {
  desktop: { viewport: { width: 1400, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1400, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 },
  print: { viewport: { width: 1000, height: 1400 } },
};
const wrong = [];

async function open(browser, page, look) {
  const context = await browser.newContext({ ...looks[look], reducedMotion: "reduce", offline: true });
  const tab = await context.newPage();
  const say = (text) => wrong.push(`${page.name}, ${look}: ${text}`);
  const url = pathToFileURL(page.file).href;
  tab.on("console", (message) => ["error", "warning"].includes(message.type()) && say(`console: ${message.text()}`));
  tab.on("pageerror", (error) => say(`script failed: ${error.message}`));
  tab.on("dialog", (dialog) => { say(`a dialog: ${dialog.message()}`); void dialog.dismiss(); });
  tab.on("popup", () => say("another window"));
  tab.on("request", (request) => request.url().split("#")[0] !== url && say(`a request for ${request.url()}`));
  await tab.goto(url);
  await tab.waitForSelector("#numbers");
  // A slow machine draws late: what is still wrong after 5 seconds is wrong.
  const check = async (test, argument) => {
    let found = await tab.evaluate(test, argument);
    for (let tries = 0; found.length && tries < 50; ++tries) {
      await tab.waitForTimeout(100);
      found = await tab.evaluate(test, argument);
    }
    found.forEach(say);
  };
  return { context, tab, check, say };
}

// The checks of the pictures themselves, of those that this run has.
async function drawn(tab, say) {
  const all = [["#timeline .p-timeline", pictures.checkTimeline], ["#flame .p-flame", pictures.checkFlame],
               ["#roofline .p-roofline", pictures.checkRoofline], [".p-chart", pictures.checkCharts],
               ["#requests .p-requests", pictures.checkRequests]];
  for (const [selector, check] of all) {
    if (await tab.locator(selector).count() === 0) continue;
    try {
      await check(tab);
    } catch (error) {
      say(`${selector}: ${error.message.split("\n")[0]}`);
    }
  }
}

async function look(browser, page, look) {
  const { context, tab, check, say } = await open(browser, page, look);
  if (look === "print") {
    await tab.emulateMedia({ media: "print" });
    await check(checks.printed);
    if (!page.hostile) await tab.pdf({ path: join(out, `${page.name}.pdf`), format: "A4" });
  } else {
    await check(checks.width);
    await check(checks.contrast);
  }
  if (look === "desktop") {
    await check(checks.sections, [checks.sectionsOf(page.filled), page.filled]);
    if (!page.hostile) await useIt(tab, say);
    for (const test of [checks.headings, checks.landmarks, checks.names, checks.unique, checks.tables, checks.focusable]) await check(test);
    if (!page.hostile) await drawn(tab, say);
  }
  // What the names of tests/traces/hostile.cpp would set; "in" also sees a prototype that was written to.
  if (await tab.evaluate(() => "hostile_ran" in window || "__pwned" in window)) say("a name of the run ran as a script");
  if (tab.frames().length !== 1) say("the page has frames");
  await tab.evaluate(() => scrollTo(0, 0));
  await tab.screenshot({ path: join(out, `${page.name}.${look}.png`), fullPage: look !== "print" });
  await context.close();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  for (const page of pages) {
    for (const name of Object.keys(looks)) if (!page.hostile || name === "desktop" || name === "print") await look(browser, page, name);
  }
} finally {
  await browser.close();
}
for (const text of wrong) console.error(text);
console.error(`browser.page: ${pages.length} pages, ${wrong.length} problems; screenshots in ${out}`);
process.exit(wrong.length ? 1 : 0);
