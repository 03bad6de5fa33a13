// What the pictures of a page must do in a real browser. Each check is given a page of playwright that shows a run,
// and throws what is wrong. Sections are found by the ids that the page gives them.
import assert from "node:assert/strict";

const settle = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));

// Canvases that have at least one pixel that is not transparent, by number of canvases.
const painted = (page, selector) => page.locator(selector).evaluateAll((canvases) => canvases.filter((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((value, index) => index % 4 === 3 && value > 0);
}).length);

export async function checkTimeline(page) {
  const picture = page.locator("#timeline .p-timeline");
  await picture.locator(".p-lanes canvas").first().waitFor();
  await settle(page);
  assert.ok(await painted(page, "#timeline [data-lane] canvas") > 0, "no lane shows a slice");
  const status = () => picture.locator(":scope > div.p-muted").innerText();
  const spoken = () => picture.locator(":scope > [aria-live]").innerText();
  if (await picture.getByRole("button", { name: /^one .* step$/ }).count() > 0)
    assert.match(await status(), /^.* step, median: .* of .* in view/s, "a median step is in view at first");
  await picture.getByRole("button", { name: "whole run" }).click();
  await settle(page);
  const whole = await spoken();
  assert.match(whole, /^window from 0 ns to /, "the button shows the whole run");
  const lane = picture.locator("[data-lane]").first();
  await lane.focus();
  await page.keyboard.press("w");
  await settle(page);
  assert.notEqual(await spoken(), whole, "w zooms in");
  assert.match(await status(), / of .* in view, /, "the status says how much is in view");
  await page.keyboard.press("0");
  await settle(page);
  assert.equal(await spoken(), whole, "0 shows the whole run again");
  await page.keyboard.press("p");
  await settle(page);
  assert.match(await spoken(), /begins at .*, takes /, "p selects a slice and says what it is");
  const share = async () => Number(/([\d.]+) % of the window/.exec(await picture.locator(".p-detail").innerText())?.[1]);
  const before = await share();
  await page.keyboard.press("Enter");
  await settle(page);
  if (before < 70) assert.ok(await share() > before, "Enter zooms to the slice");
  await page.keyboard.press("Escape");
  await page.keyboard.press("0");
  await checkTimelineMouse(page, picture, spoken, whole);
  await checkTimelineTables(page, picture);
}

async function checkTimelineMouse(page, picture, spoken, whole) {
  const canvas = picture.locator("[data-lane] canvas").first();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 5);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 5, { steps: 4 });
  await page.mouse.up();
  await settle(page);
  assert.equal(await spoken(), whole, "a drag does not move the window");
  const sums = picture.getByRole("region", { name: "selected time" });
  assert.match(await sums.innerText(), / selected/, "a drag sums up what it marks");
  await sums.getByRole("button", { name: "zoom to it" }).click();
  await settle(page);
  const zoomed = await spoken();
  assert.notEqual(zoomed, whole, "the button zooms to the selection");
  await page.mouse.move(box.x + box.width * 0.5, box.y + 5);
  await picture.getByRole("button", { name: "clear" }).focus();
  await page.keyboard.press("d");
  await settle(page);
  assert.notEqual(await spoken(), zoomed, "d moves while the pointer is over the picture");
  await sums.getByRole("button", { name: "clear" }).click();
  await picture.getByRole("button", { name: "whole run" }).click();
  await settle(page);
  assert.equal(await spoken(), whole, "the button shows the whole run");
  await picture.getByRole("searchbox").fill("no kernel has this name");
  await settle(page);
  assert.equal(await picture.getByRole("status").innerText(), "no slice of that name in this window");
  await picture.getByRole("searchbox").fill("");
}

async function checkTimelineTables(page, picture) {
  await picture.getByText("Lanes of this window as a table").click();
  await picture.locator("tbody tr").first().waitFor();
  const rows = await picture.locator("table").first().locator("tbody tr").count();
  assert.equal(rows, await picture.locator("[data-lane]").count(), "the table has a row per lane");
  await picture.getByText("Lanes of this window as a table").click();
}

export async function checkFlame(page, section = "#flame") {
  const picture = page.locator(`${section} .p-flame`);
  await picture.locator("canvas").first().waitFor();
  await settle(page);
  assert.ok(await painted(page, `${section} .p-flame [role=application] canvas`) === 1, "the flame graph is empty");
  const said = () => picture.locator("[aria-live]").innerText();
  const all = await said();
  await picture.locator("[role=application]").focus();
  await page.keyboard.press("ArrowDown");
  await settle(page);
  assert.notEqual(await said(), all, "the arrow goes to a child");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await picture.locator(".p-crumbs li").count(), 2, "Enter zooms, and the path is shown");
  await page.keyboard.press("Escape");
  await settle(page);
  assert.equal(await picture.locator(".p-crumbs li").count(), 1, "Escape goes out again");
  await picture.getByRole("searchbox").fill("e");
  await settle(page);
  assert.match(await picture.getByRole("status").innerText(), /^\S+( [kM])? frames, .* % of (GPU time|CPU time|bytes)$/);
  await picture.getByRole("searchbox").fill("");
  if (section === "#flame") await checkFlameShapes(page, picture, said);
}

// Layers apart, one stage, the callers and callees of a frame.
async function checkFlameShapes(page, picture, said) {
  await picture.locator("[role=application]").focus();
  for (const key of ["ArrowDown", "ArrowDown", "c"]) await page.keyboard.press(key);
  await settle(page);
  assert.equal(await painted(page, "#flame .p-flame [role=application] canvas"), 2, "c shows callers and callees");
  assert.match(await said(), /place.* together$/);
  await picture.getByRole("button", { name: "back to all call paths" }).click();
  for (const name of ["unfold layers", "framework wrappers"]) {
    const box = picture.getByLabel(name);
    if (await box.count() === 0) continue;
    await box.check();
    await settle(page);
    assert.equal(await painted(page, "#flame .p-flame [role=application] canvas"), 1, `${name}: the flame graph is empty`);
    await box.uncheck();
  }
  const stages = picture.getByRole("combobox");
  if (await stages.count() > 0) {
    await stages.selectOption({ index: 1 });
    await settle(page);
    assert.equal(await painted(page, "#flame .p-flame [role=application] canvas"), 1, "a stage has no flame graph");
    await stages.selectOption({ index: 0 });
  }
}

export async function checkRoofline(page) {
  const picture = page.locator("#roofline .p-roofline");
  const points = await picture.locator("path.point").count();
  assert.ok(points > 0, "the roofline has no points");
  await picture.getByRole("application").focus();
  await page.keyboard.press("ArrowRight");
  await settle(page);
  assert.match(await picture.locator("[aria-live]").innerText(), /FLOP\/s at .* FLOP\/B, /, "the arrow reads out a point");
  await page.keyboard.press("Escape");
  const kind = picture.getByRole("group", { name: "what is shown" }).getByRole("button").first();
  await kind.click();
  await settle(page);
  assert.ok(await picture.locator("path.point").count() < points, "the legend hides a kind");
  await kind.click();
}

// Charts of steps, memory and telemetry, wherever they stand.
export async function checkCharts(page) {
  const charts = page.locator(".p-chart");
  for (let at = 0; at < await charts.count(); ++at) {
    const drawing = charts.nth(at).locator("svg[role=img]");
    await drawing.waitFor();
    const label = await drawing.getAttribute("aria-label");
    assert.match(label, /min .*, median .*, max /, `${label}: says its numbers`);
    assert.doesNotMatch(label, /NaN|undefined|Infinity/);
    assert.doesNotMatch(await drawing.locator("path.line").first().getAttribute("d"), /NaN|Infinity/);
    await drawing.focus();
    await page.keyboard.press("ArrowRight");
    await settle(page);
    assert.match(await charts.nth(at).locator("[aria-live]").innerText(), /^at /, `${label}: the arrow reads out a value`);
    await page.keyboard.press("Escape");
  }
  return charts.count();
}

// A request is selected by the pointer and by keys, tells its steps, who was in one, and where its kernels are.
export async function checkRequests(page) {
  const picture = page.locator("#requests .p-requests"), lanes = picture.locator(".p-lanes"), details = page.locator("#requests .request-details");
  await lanes.waitFor();
  await settle(page);
  assert.equal(await painted(page, "#requests .p-lanes canvas"), 1, "no request is drawn");
  await lanes.focus();
  await page.keyboard.press("ArrowDown");
  await details.waitFor();
  const first = await details.getAttribute("aria-label");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await settle(page);
  const chosen = await details.getAttribute("aria-label");
  assert.match(chosen, /^Request ./, "the details do not name the request");
  assert.notEqual(chosen, first, "ArrowDown does not select another request");
  assert.match(await picture.locator(":scope > [aria-live]").innerText(), /arrives at/, "the selected request is not said");
  const shares = await details.locator("table").first().locator("tbody tr").count();
  assert.ok(shares > 1, "it does not say where the time of the request went");
  const step = details.getByRole("button", { name: /^[0-9]+$/ }).first();
  if (await step.count() > 0) {
    await step.click();
    const members = page.locator("#requests .step-details");
    await members.waitFor();
    const parts = await members.locator("tbody tr").count();
    assert.ok(parts > 1, "a step has its request and the engine");
    await members.getByRole("button", { name: "its kernels in the timeline" }).click();
    await page.locator("#timeline .p-sums").waitFor();
    assert.match(await page.locator("#timeline .p-sums").innerText(), /selected/, "the timeline does not show the step");
    await page.locator("#timeline .p-sums").getByRole("button", { name: "clear" }).click();
  }
  await lanes.focus();
  await page.keyboard.press("Enter");
  await settle(page);
  assert.match(await picture.locator(":scope > div.p-muted").innerText(), / of .* in view/, "Enter does not zoom to the request");
  await page.keyboard.press("Escape");
  await settle(page);
  assert.equal(await details.count(), 0, "Escape does not let the request go");
  await picture.getByRole("button", { name: "all of it" }).click();
  const box = await lanes.boundingBox(), status = () => picture.locator(":scope > div.p-muted").innerText(), all = await status();
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.6);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + box.height * 0.6, { steps: 3 });
  await page.mouse.up();
  await settle(page);
  assert.notEqual(await status(), all, "a drag does not zoom");
  await picture.getByRole("button", { name: "all of it" }).click();
  const failed = picture.locator("select option[value=failed]");
  if (await failed.count() > 0) {
    await picture.locator("select").selectOption("failed");
    await settle(page);
    assert.notEqual(await status(), all, "a filter leaves all requests in view");
    await picture.locator("select").selectOption("all");
  }
}
