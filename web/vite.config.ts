// One app.js and one app.css, no other file: the program embeds them and puts them into a page (docs/format/page.md).
import { readFileSync } from "node:fs";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { scriptSafe } from "./tests/assemble.mjs";

// `PAGE=data.json npm run dev`: the page of that data, reloaded on every edit.
function devData(): Plugin {
  return {
    name: "dev-data",
    apply: "serve",
    transformIndexHtml() {
      if (!process.env["PAGE"]) throw new Error("PAGE=data.json npm run dev: which data?");
      const json = readFileSync(process.env["PAGE"], "utf8");
      return [{ tag: "script", attrs: { type: "application/json", id: "data" }, children: scriptSafe(json), injectTo: "body-prepend" }];
    },
  };
}

export default defineConfig({
  plugins: [devData()],
  publicDir: false,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    sourcemap: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
    modulePreload: false,
    rolldownOptions: {
      input: "src/main.tsx",
      output: { format: "iife", entryFileNames: "app.js", assetFileNames: "app[extname]" },
    },
  },
  test: { include: ["tests/**/*.test.ts", "tests/**/*.test.tsx", "src/**/*.test.ts", "src/**/*.test.tsx"] },
});
