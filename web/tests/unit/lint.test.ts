import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { problems } from "../../lint.mjs";

// Put together here, so that this file itself is clean.
const bad = ["inner" + "HTML", "outer" + "HTML", "insertAdjacent" + "HTML", "dangerouslySet" + "InnerHTML", "document." + "write(x)",
             "ev" + "al('1')", "new " + "Function('x')", "href='java" + "script:1'", "setTimeout(" + "'x')", "console." + "log(1)",
             "fetch('https://" + "example.com')"];

describe("the lint of our sources", () => {
  it.each(bad)("refuses %s", (text) => expect(problems("a.ts", `const ok = 1;\nx.${text};`)).toHaveLength(1));
  it("lets ordinary code pass", () => {
    expect(problems("a.ts", "const text = node.textContent; // evaluate\nfunction write() {}\nconst ns = 1;")).toEqual([]);
  });
  it("refuses long lines and long files", () => {
    expect(problems("a.ts", "x".repeat(151))).toHaveLength(1);
    expect(problems("a.ts", "x\n".repeat(401))).toHaveLength(1);
  });
});

describe("the lock file", () => {
  const lock = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as { packages: Record<string, Package> };
  interface Package { version?: string; resolved?: string; integrity?: string }
  const packages = Object.entries(lock.packages).filter(([path]) => path !== "");
  it("has a checksum of every package and no address", () => {
    expect(packages.filter(([, each]) => !each.integrity || each.resolved).map(([path]) => path)).toEqual([]);
  });
  it("has the bundler for every system, else npm ci refuses it", () => {
    expect(packages.filter(([path]) => path.includes("@rolldown/binding-")).length).toBeGreaterThan(10);
  });
});
