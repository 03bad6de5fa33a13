// The page as the program puts it together (docs/format/page.md), for the development server and tests of the
// application alone: node tests/assemble.mjs DATA.json FOLDER_OF_APP OUT.html
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";

const unsafe = /[<>&\u2028\u2029]/g;
export function scriptSafe(json) {
  return json.replace(unsafe, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

export function assemble(json, js, css) {
  const policy = `default-src 'none'; script-src ${hash(js)}; style-src ${hash(css)}; img-src data:; connect-src 'none'; ` +
    "base-uri 'none'; form-action 'none'";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>llmprof</title>
<style>${css}</style></head>
<body><div id="app"></div>
<script type="application/json" id="data">${scriptSafe(json)}</script>
<script>${js}</script></body></html>
`;
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) {
  const [data, folder, out] = argv.slice(2);
  const text = (name) => readFileSync(join(folder, name), "utf8");
  writeFileSync(out, assemble(readFileSync(data, "utf8"), text("app.js"), text("app.css")));
}
