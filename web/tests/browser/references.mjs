// The page of every run in tests/runs against a small picture of it: node references.mjs BUILD OUT [--update] [RUN…]
// A page is taken at desktop width, five times smaller, and compared with tests/browser/references part by part: sections,
// and the pictures in them. --update takes the pages as they are for the references: look at them before. Exit status 1
// with every difference in words, 77 where there is no browser.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { difference, png, read } from "./images.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../.."), references = join(root, "tests/browser/references");
const words = process.argv.slice(2).filter((word) => word !== "--update"), update = process.argv.includes("--update");
const [build, out, ...wanted] = words;
const executablePath = [process.env.LLMPROF_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
  .find((path) => path && existsSync(path));
if (!executablePath) {
  console.error("browser.references: no chromium; tools/setup.sh installs it");
  process.exit(77);
}
const scale = 0.2;

function* runs(folder) {
  for (const { name } of readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    const path = join(folder, name);
    if (existsSync(join(path, "run.json"))) yield path;
    else yield* runs(path);
  }
}

function pageOf(run, name) {
  const copy = join(out, `${name}.llmprof`), file = join(out, `${name}.html`);
  rmSync(copy, { recursive: true, force: true });
  cpSync(run, copy, { recursive: true });
  const done = spawnSync(resolve(build, "bin/llmprof"), ["report", copy, "--html", file], { encoding: "utf8" });
  rmSync(copy, { recursive: true, force: true });
  if (done.status !== 0) throw new Error(`llmprof report ${run} --html: status ${done.status}\n${done.stderr}`);
  return file;
}

// Sections and the pictures in them, by name, with their places in the small picture.
const parts = (tab) => tab.evaluate((by) => {
  const found = {};
  const add = (name, element) => {
    const whole = element.getBoundingClientRect();
    const lane = element.matches(".p-lanes") ? element.querySelector("canvas")?.getBoundingClientRect() : null;
    const box = lane ? { x: lane.x, width: lane.width, y: whole.y, height: whole.height } : whole;  // without the names of lanes
    if (box.height >= 40 && box.width >= 200)
      found[name] = { x: by * (box.x + scrollX), y: by * (box.y + scrollY), width: by * box.width, height: by * box.height };
  };
  add("head", document.querySelector("header"));
  for (const section of document.querySelectorAll("main > section")) {
    add(section.id, section);
    section.querySelectorAll(".p-lanes, .p-flame canvas, .p-roofline svg[role=application], .p-chart svg, .cards")
      .forEach((picture, at) => add(`${section.id}, picture ${at + 1}`, picture));
  }
  return found;
}, scale);

// Until nothing is drawn any more.
async function taken(tab) {
  let last = null;
  for (let tries = 0; tries < 40; ++tries) {
    const shot = await tab.screenshot({ fullPage: true, animations: "disabled" });
    if (last && shot.equals(last)) break;
    last = shot;
    await tab.waitForTimeout(150);
  }
  return { image: await read(tab, last), parts: await parts(tab) };
}

function compared(now, before) {
  const problems = [];
  for (const [name, place] of Object.entries(before.parts)) {
    if (!now.parts[name]) problems.push(`${name} is not there`);
    else {
      const text = difference(now.image, now.parts[name], before.image, place);
      if (text) problems.push(`${name} ${text}`);
    }
  }
  for (const name of Object.keys(now.parts)) if (!before.parts[name]) problems.push(`${name} is new`);
  return problems;
}

// The test of the test: without a section, or with empty pictures, a page must not pass.
async function notBlind(tab, before) {
  const problems = [];
  await tab.evaluate(() => { document.getElementById("waterfall").style.display = "none"; });
  const without = compared(await taken(tab), before).join("; ");
  if (!/waterfall is not there/.test(without)) problems.push(`a page without a section passes: ${without}`);
  await tab.evaluate(() => document.styleSheets[0].insertRule("canvas, .p-roofline svg * { visibility: hidden !important }"));
  const empty = compared(await taken(tab), before).join("; ");
  for (const name of ["timeline, picture 1", "flame, picture 1", "roofline, picture 1"])
    if (before.parts[name] && !empty.includes(`${name} `)) problems.push(`an empty ${name} passes: ${empty}`);
  return problems;
}

mkdirSync(out, { recursive: true });
mkdirSync(references, { recursive: true });
const index = join(references, "parts.json");
const known = existsSync(index) ? JSON.parse(readFileSync(index, "utf8")) : {};
const wrong = [];
let pages = 0, tested = false;
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, deviceScaleFactor: scale, colorScheme: "light",
                                             reducedMotion: "reduce", offline: true });
  for (const run of runs(join(root, "tests/runs"))) {
    const name = relative(join(root, "tests/runs"), run).replaceAll("/", "_");
    if (wanted.length && !wanted.includes(name)) continue;
    const tab = await context.newPage();
    tab.on("pageerror", (error) => wrong.push(`${name}: script failed: ${error.message}`));
    await tab.goto(pathToFileURL(pageOf(run, name)).href);
    await tab.waitForSelector("#numbers");
    await tab.evaluate((font) => { document.body.style.fontFamily = font; }, process.env.LLMPROF_REFERENCE_FONT ?? "");  // to try another
    const now = await taken(tab), picture = png(now.image);
    writeFileSync(join(out, `${name}.png`), picture);
    pages += 1;
    if (update) {
      writeFileSync(join(references, `${name}.png`), picture);
      const short = (place) => Object.fromEntries(Object.entries(place).map(([key, value]) => [key, Math.round(10 * value) / 10]));
      known[name] = Object.fromEntries(Object.entries(now.parts).map(([part, place]) => [part, short(place)]));
    } else if (!known[name]) {
      wrong.push(`${name}: has no reference`);
    } else {
      const before = { image: await read(tab, readFileSync(join(references, `${name}.png`))), parts: known[name] };
      const found = compared(now, before);
      wrong.push(...found.map((text) => `${name}: ${text}`));
      if (!tested && before.parts["waterfall"] && before.parts["roofline, picture 1"] && found.length === 0) {
        tested = true;
        wrong.push(...(await notBlind(tab, before)).map((text) => `${name}: ${text}`));
      }
    }
    await tab.close();
  }
} finally {
  await browser.close();
}
if (update) writeFileSync(index, `{\n${Object.keys(known).sort().map((name) => `${JSON.stringify(name)}: ${JSON.stringify(known[name])}`).join(",\n")}\n}\n`);
else if (!wanted.length && !tested && !wrong.length) wrong.push("no run could show that a missing part is seen");
for (const text of wrong) console.error(text);
console.error(`browser.references: ${pages} pages, ${wrong.length} problems; pictures in ${out}` +
  (wrong.length ? "; where they look right: node web/tests/browser/references.mjs BUILD OUT --update" : ""));
process.exit(wrong.length ? 1 : 0);
