// What our sources must not contain: ways to turn data into code or markup, other people's servers, forgotten output.
// A line that must name one says so: "lint: allow". Exit status 1 on the first run that finds any.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const rules = [
  ["markup from text", /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|srcdoc|createContextualFragment|DOMParser|setHTMLUnsafe|parseHTMLUnsafe)\b/],
  ["markup from text", /\bdocument\s*\.\s*write(ln)?\b/],
  ["code from text", /\beval\s*\(|\bnew\s+Function\b|\bFunction\s*\(|(?:setTimeout|setInterval)\s*\(\s*["'`]/],
  ["code from text", /javascript\s*:/i],
  ["a type left open", /@ts-(ignore|nocheck)\b/],
  ["forgotten output", /\bconsole\.(log|debug|info)\b|\bdebugger\b/],
  ["something from elsewhere", /\b(https?:)?\/\/[a-z0-9-]+(\.[a-z0-9-]+)*\.(com|org|net|io|dev)\b/i],
];
const lineLimit = 400, lengthLimit = 150;

export function problems(name, text) {
  const found = [];
  const lines = text.split("\n");
  if (lines.length > lineLimit) found.push(`${name}: ${lines.length} lines, limit ${lineLimit}`);
  lines.forEach((line, at) => {
    for (const [what, pattern] of rules) {
      if (pattern.test(line) && !line.includes("lint: allow")) found.push(`${name}:${at + 1}: ${what}: ${line.trim()}`);
    }
    if (line.length > lengthLimit) found.push(`${name}:${at + 1}: ${line.length} characters, limit ${lengthLimit}`);
  });
  return found;
}

function* sources(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (/\.(tsx?|css)$/.test(entry.name)) yield path;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = [...sources(join(root, "src"))].flatMap((path) => problems(relative(root, path), readFileSync(path, "utf8")));
  for (const line of found) console.error(line);
  process.exit(found.length ? 1 : 0);
}
