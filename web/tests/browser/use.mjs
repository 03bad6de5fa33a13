// The page as somebody uses it: keys, sorting, filters, the theme.
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
  if (await background() === before) say("dark looks like light");
  await tab.selectOption(".theme select", "");
  if (await background() !== before) say("the theme does not come back");
}

async function sorting(tab, say) {
  const table = tab.locator("#environment table, #gemms table, #kernels table").first();
  if (await table.count() === 0) return;
  const head = table.locator("thead th").first();
  const names = () => table.locator("tbody tr > :first-child").allTextContents();
  await head.locator("button").click();
  const up = await names();
  await head.locator("button").click();
  const down = await names();
  if (await head.getAttribute("aria-sort") !== "descending") say("a table does not say how it is sorted");
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
    if (await rows.count() <= before) say("ArrowRight does not open a module");
    await tab.keyboard.press("ArrowRight");
    const inside = await tab.evaluate(() => document.activeElement?.getAttribute("data-path"));
    if (!inside?.startsWith(`${path}.`)) say(`ArrowRight does not go into ${path}, but to ${inside}`);
    await tab.keyboard.press("ArrowLeft");
    await tab.keyboard.press("ArrowLeft");
    if (await rows.count() !== before) say("ArrowLeft does not close a module");
  }
  await tab.fill("#modules input[type=search]", "no module is called so");
  if (await rows.count() !== 0) say("the filter of modules does not filter");
  await tab.fill("#modules input[type=search]", "");
}
