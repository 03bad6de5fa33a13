// The page of `llmprof view` in a real browser: node view.mjs URL OUT.png. Zooms into the timeline and looks that the
// server is asked and the picture changes. Exit status 1 with every problem in words, 77 where there is no browser.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const [url, out] = process.argv.slice(2);
const executablePath = [process.env.LLMPROF_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
  .find((path) => path && existsSync(path));
if (!executablePath) process.exit(77);

const wrong = [];
const windows = [];  // asked for
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  const tab = await (await browser.newContext({ viewport: { width: 1400, height: 900 }, reducedMotion: "reduce" })).newPage();
  const origin = new URL(url).origin;
  tab.on("console", (message) => {
    if (message.type() === "error") wrong.push(`console: ${message.text()}`);
  });
  tab.on("pageerror", (error) => wrong.push(`script failed: ${error.message}`));
  tab.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) wrong.push(`a request for ${request.url()}`);
    if (request.url().includes(new URL(url).hash.slice(7))) wrong.push("the token stands in a request's URL");
  });
  tab.on("response", (response) => {
    if (response.url().includes("/timeline?")) windows.push([response.status(), new URL(response.url()).searchParams]);
  });
  await tab.goto(url);
  await tab.waitForSelector("#numbers", { timeout: 120_000 });
  if (tab.url().includes("token")) wrong.push("the token stays in the address bar");
  const timelines = tab.locator("#timeline [role=region][aria-label=timeline]");
  await timelines.first().waitFor();
  const zoom = timelines.first().locator("button[aria-label='zoom in']");
  const picture = async () => (await timelines.first().screenshot()).toString("base64");
  const before = await picture();
  for (let times = 0; times < 6; ++times) await zoom.click();
  await tab.waitForResponse((response) => response.url().includes("/timeline?"), { timeout: 60_000 }).catch(() => null);
  await tab.waitForTimeout(500);
  if (windows.length === 0) wrong.push("zooming asked the server for nothing");
  for (const [status] of windows) if (status !== 200) wrong.push(`a window was answered with ${status}`);
  if (await picture() === before) wrong.push("zooming changed nothing");
  if (await tab.locator("#timeline [role=alert]").count()) wrong.push(await tab.locator("#timeline [role=alert]").first().textContent());
  const requests = tab.locator("#requests .p-requests");
  if (await requests.count()) {
    const asked = [];
    tab.on("response", (response) => /\/(requests|members)\?/.test(response.url()) && asked.push([response.status(), response.url()]));
    await requests.locator("button[aria-label='zoom in']").click();
    await requests.locator("button[aria-label='zoom in']").click();
    await requests.locator(".p-lanes").focus();
    await tab.keyboard.press("ArrowDown");
    const details = tab.locator("#requests .request-details");
    await details.waitFor();
    const step = details.getByRole("button", { name: /^[0-9]+$/ }).first();
    await step.waitFor({ timeout: 60_000 }).catch(() => wrong.push(`no steps of a request: ${asked.join(" ")}`));
    await step.click();
    await tab.locator("#requests .step-details tbody tr").first().waitFor({ timeout: 60_000 }).catch(() => wrong.push("nobody was in the step"));
    for (const kind of ["requests?width", "members?request", "members?step"])
      if (!asked.some(([status, url]) => status === 200 && url.includes(kind))) wrong.push(`the server was not asked for ${kind}: ${asked.join(" ")}`);
  }
  const runs = await tab.locator(".picker option").count();
  if (runs === 2) await timelines.nth(1).waitFor({ timeout: 120_000 }).catch(() => wrong.push("two runs, but not two timelines"));
  const rows = tab.locator("details.rows").first();
  if (await rows.count()) {
    await rows.evaluate((each) => { for (let at = each; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true; });
    await rows.locator("button", { hasText: "Show them" }).click();
    await rows.locator("table, p[role=status]:not(:has-text('asking'))").first().waitFor({ timeout: 60_000 });
    if (await rows.locator("table").count() === 0) wrong.push(`no rows: ${await rows.locator("p[role=status]").textContent()}`);
  }
  if (out) await tab.screenshot({ path: out, fullPage: true });
} finally {
  await browser.close();
}
for (const text of wrong) console.error(text);
process.exit(wrong.length ? 1 : 0);
