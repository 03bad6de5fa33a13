// The page as somebody uses it: keys, sorting, filters, the theme.
async function eventually(condition) {
  for (let tries = 0; tries < 50; ++tries) {
    if (await condition()) return true;
    await new Promise((done) => setTimeout(done, 100));
  }
  return false;
}

export async function useIt(tab, say) {
  await skipLink(tab, say);
  await theme(tab, say);
  await sorting(tab, say);
  await tree(tab, say);
}

async function skipLink(tab, say) {
  await tab.keyboard.press("Tab");
  const first = await tab.evaluate(() => document.activeElement?.getAttribute("href"));
  if (first !== "#main") say(`the first key stop is ${first}, not the link to the content`);
}

async function theme(tab, say) {
  const background = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await background();
  await tab.selectOption(".theme select", "dark");
  if (!await eventually(async () => await background() !== before)) say("dark looks like light");
  await tab.selectOption(".theme select", "");
  if (!await eventually(async () => await background() === before)) say("the theme does not come back");
}

async function sorting(tab, say) {
  const table = tab.locator("#environment table, #gemms table, #kernels table").first();
  if (await table.count() === 0) return;
  const head = table.locator("thead th").first();
  const names = () => table.locator("tbody tr > :first-child").allTextContents();
  const sorted = async (way) => {
    await head.locator("button").click();
    if (!await eventually(async () => await head.getAttribute("aria-sort") === way)) say(`a table does not say that it is ${way}`);
    return names();
  };
  const up = await sorted("ascending"), down = await sorted("descending");
  if (up.length > 1 && up.join() === down.join() && new Set(up).size > 1) say("a table does not sort");
}

async function tree(tab, say) {
  const rows = tab.locator("#modules tr[data-path]");
  const before = await rows.count();
  if (before === 0) return;
  const closed = tab.locator("#modules tr[aria-expanded=false]").first();
  if (await closed.count()) {
    const path = await closed.getAttribute("data-path");
    await closed.focus();
    await tab.keyboard.press("ArrowRight");
    if (!await eventually(async () => await rows.count() > before)) say("ArrowRight does not open a module");
    await tab.keyboard.press("ArrowRight");
    const at = () => tab.evaluate(() => document.activeElement?.getAttribute("data-path"));
    if (!await eventually(async () => (await at())?.startsWith(`${path}.`))) say(`ArrowRight does not go into ${path}, but to ${await at()}`);
    await tab.keyboard.press("ArrowLeft");
    if (!await eventually(async () => await at() === path)) say(`ArrowLeft does not go back to ${path}`);
    await tab.keyboard.press("ArrowLeft");
    if (!await eventually(async () => await rows.count() === before)) say("ArrowLeft does not close a module");
  }
  await tab.fill("#modules input[type=search]", "no module is called so");
  if (!await eventually(async () => await rows.count() === 0)) say("the filter of modules does not filter");
  await tab.fill("#modules input[type=search]", "");
}
