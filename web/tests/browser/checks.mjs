// What a page must be, as functions that run in it and return what is wrong, in words.

export const sectionIds = ["summary", "stages", "waterfall", "roofline", "timeline", "flame", "modules", "gemms", "kernels", "memory",
  "counters", "telemetry", "functions", "environment", "losses", "numbers"];
// A page has the section of requests only where the run has any.
export const sectionsOf = (filled) => sectionIds.flatMap((id) => (id === "waterfall" && filled.includes("requests") ? ["requests", id] : [id]));

// Every section is there, and shows something or says why not. `filled`: those that must show something.
export const sections = ([ids, filled]) => ids.flatMap((id, at) => {
  const section = document.getElementById(id);
  if (!section) return [`section ${id} is missing`];
  const order = [...document.querySelectorAll("main > section")].map((each) => each.id).filter((each) => ids.includes(each));
  const shows = section.querySelector("tbody tr, canvas, svg, .card, .finding, .headline");
  const says = [...section.querySelectorAll(".empty")].every((each) => each.textContent.trim().length > 10);
  return [
    order[at] === id ? null : `section ${id} is not in its place`,
    section.querySelector("h2")?.textContent ? null : `section ${id} has no heading`,
    shows || section.querySelector(".empty") ? null : `section ${id} is blank`,
    says ? null : `section ${id} does not say why it is empty`,
    section.querySelector("[role=alert]") ? `section ${id} failed: ${section.querySelector("[role=alert]").textContent}` : null,
    !filled.includes(id) || shows ? null : `section ${id} shows nothing: ${section.textContent.slice(0, 200)}`,
  ].filter(Boolean);
});

export const headings = () => {
  const levels = [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((each) => Number(each.tagName[1]));
  const jumps = levels.filter((level, at) => at > 0 && level > levels[at - 1] + 1).length;
  return [levels.filter((level) => level === 1).length === 1 ? null : "there is not one h1", jumps ? `${jumps} headings skip a level` : null].filter(Boolean);
};

export const landmarks = () => ["header", "nav", "main"].filter((name) => document.querySelectorAll(name).length !== 1)
  .map((name) => `there is not one ${name}`)
  .concat(document.documentElement.lang ? [] : ["the language of the page is not said"])
  .concat(document.title.includes("llmprof") ? [] : ["the page has no title"]);

// Pictures have a name; what is only decoration is hidden from readers.
export const names = () => {
  const hidden = (element) => element.closest("[aria-hidden=true]") !== null;
  const named = (element) => (element.getAttribute("aria-label") || element.getAttribute("aria-labelledby") || element.getAttribute("alt")
    || element.querySelector(":scope > title")?.textContent || "").trim() !== "";
  const pictures = [...document.querySelectorAll("svg, img, canvas")].filter((each) => !hidden(each) && !each.parentElement.closest("svg"));
  const text = (element) => named(element) || element.textContent.trim() !== "" || element.closest("label")?.textContent.trim() || element.labels?.length;
  const controls = [...document.querySelectorAll("button, a[href], select, input, summary")].filter((each) => !hidden(each) && !text(each));
  return pictures.filter((each) => !named(each)).map((each) => `${each.tagName} without a name: ${each.outerHTML.slice(0, 120)}`) // lint: allow
    .concat(controls.map((each) => `${each.tagName} without a name in ${each.closest("section")?.id}`));
};

export const unique = () => {
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))].map((id) => `the id ${id} is there twice`);
};

// Whatever can be used by mouse can be reached by keyboard.
export const focusable = () => {
  const all = [...document.querySelectorAll("button, a[href], select, input, summary, [tabindex='0'], [role=button], [role=slider]")];
  const seen = all.filter((each) => each.checkVisibility() && !each.disabled && each.getAttribute("tabindex") !== "-1");
  const lost = seen.filter((each) => { each.focus({ preventScroll: true }); return document.activeElement !== each; });
  document.activeElement?.blur();
  return lost.map((each) => `cannot be focused: ${each.tagName} ${each.textContent.slice(0, 40)} in ${each.closest("section")?.id}`);
};

export const tables = () => [...document.querySelectorAll("table")].flatMap((table) => {
  const where = table.closest("section")?.id;
  return [
    [...table.querySelectorAll("th")].every((each) => each.hasAttribute("scope")) ? null : `a th without scope in ${where}`,
    table.querySelector("thead th") ? null : `a table without headings in ${where}`,
  ].filter(Boolean);
});

// The page itself does not scroll sideways; wide things scroll inside themselves.
export const width = () => {
  const room = document.documentElement.clientWidth;  // a phone shrinks a page that is too wide, so not innerWidth
  // Only what scrolls or is cut off inside something narrower may stand beyond the edge.
  const wide = document.documentElement.scrollWidth;
  const inside = (each) => each !== null && (getComputedStyle(each).overflowX !== "visible" || inside(each.parentElement));
  const guilty = [...document.querySelectorAll("main *")].filter((each) => each.getBoundingClientRect().width > 0
    && each.getBoundingClientRect().right > room + 1 && !each.closest("svg, canvas, details:not([open])") && !inside(each.parentElement));
  if (wide <= room && guilty.length === 0) return [];
  return [`the page is ${wide} wide in ${room}: ${[...new Set(guilty.map((each) => `${each.tagName}.${each.className}`))].slice(0, 5).join(", ")}`];
};

// WCAG AA of text, over the nearest opaque background.
export const contrast = () => {
  const parse = (text) => (/rgba?\(([^)]+)\)/.exec(text)?.[1] ?? "").split(/[ ,/]+/).map(Number);
  const channel = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const bad = new Map();
  for (const element of document.querySelectorAll("body :not(script):not(style)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("svg, [aria-hidden=true], :disabled") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    if (Number(style.opacity) < 1) continue;
    const [high, low] = [light(parse(style.color)), light(behind(element))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const large = parseFloat(style.fontSize) >= 18.6;
    if (ratio < (large ? 3 : 4.5)) bad.set(`${element.tagName}.${element.className} ${style.color}`, ratio);
  }
  return [...bad].slice(0, 8).map(([what, ratio]) => `contrast ${ratio.toFixed(2)}: ${what}`);
};

// On paper: black on white, everything open, nothing to press.
export const printed = () => {
  const colour = getComputedStyle(document.body);
  const closed = [...document.querySelectorAll("details:not([open])")].length;
  return [
    colour.color === "rgb(0, 0, 0)" ? null : `text is printed in ${colour.color}`,
    colour.backgroundColor === "rgb(255, 255, 255)" ? null : `on ${colour.backgroundColor}`,
    closed ? `${closed} details are closed in print` : null,
    document.querySelector("nav").checkVisibility() ? "contents are printed" : null,
    [...document.querySelectorAll("tr[aria-expanded=false]")].length ? "closed modules in print" : null,
  ].filter(Boolean);
};
