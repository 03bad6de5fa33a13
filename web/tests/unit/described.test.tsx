// Tables that the report describes: columns, cells, notes and conditions as in the terminal.
import { render } from "preact-render-to-string";
import { describe, expect, it, vi } from "vitest";
import type { Report, Row } from "../../src/data";
import { described, DescribedTable, drawable } from "../../src/described";
import { cellText } from "../../src/table";

vi.stubGlobal("matchMedia", () => ({ matches: false }));

const column = (key: string, title: string | null, format: string, more: Row = {}) =>
  ({ key, title, format, unit: null, of: null, estimate: null, error: null, if: null, unless: null, meaning: `Of \`${key}\`.`, ...more });
const table = (title: string | null, columns: Row[], notes: string[] = []) => ({ title, meaning: null, rows: null, columns, notes });
const report: Report = {
  flags: ["gpu"], devices: [{ kind: "gpu" }], coverage: { gpu_ns: 2e6 }, gpu_by_source: { by: "line" }, stages: [{ name: "decode", steps: 2 }],
  kernels: [{ name: "gemm", time_ns: 1e6, estimated_ns: 5, share: 0.5, ops: "mlp.up, mlp.gate" }, { name: "<img>", time_ns: 1e6, share: null, why: "lost" }],
  tables: {
    coverage: table(null, [column("gpu_ns", null, "ns")]), gpu_by_source: table(null, [column("by", null, "text")]),
    "kernels[]": table("By {gpu_by_source.by}", [
      column("name", "kernel", "kernel"), column("time_ns", "time", "ns", { estimate: "estimated_ns" }), column("estimated_ns", null, "ns"),
      column("share", "GPU %", "percent", { of: "coverage.gpu_ns" }), column("time_ns", "host", "ns", { unless: "gpu" }),
      column("ops", "{gpu_by_source.by}", "first_and_more", { if: "gpu" }),
    ], ["GPU %: of {coverage.gpu_ns}.", "(if functions) of functions", "(unless functions) of lines"]),
    "kernels[]#more": table("More", [column("name", "kernel", "kernel"), column("launches", "launches", "count")]),
    "kernels[].parts[]": table("Parts", [column("name", "part", "text")]), "stages[]": table("Stages", [column("name", null, "text")]),
  },
};

describe("a described table", () => {
  it("has the columns with a title whose condition holds, each once, with meaning and denominator", () => {
    const { title, columns, note } = described(report, ["kernels[]", "kernels[]#more"])!;
    expect(title).toBe("By line");
    expect(columns.map((each) => each.title)).toEqual(["kernel", "time", "GPU %", "line", "launches"]);
    expect(columns[2]).toMatchObject({ meaning: "Of share. Of coverage.gpu_ns.", bar: true });
    expect(note).toBe("GPU %: of 2 ms. of lines");
  });
  it("draws cells as the terminal does, names as text, and why something is unknown", () => {
    const html = render(<DescribedTable report={report} path="kernels[]" />);
    for (const text of ["<h3>By line</h3>", "~1 ms", ">50.0<", "mlp.up +1", 'title="mlp.up, mlp.gate"', "&lt;img>"]) expect(html).toContain(text);
    expect(html).not.toContain("<img>");
  });
  it("may have columns of the page, by the formats of the report", () => {
    const { columns } = described(report, ["kernels[]#more"], { launches: { why: "x" }, estimated_ns: "estimated", extra: { title: "extra", format: "name" } })!;
    expect(columns.map(({ title, format }) => `${title} ${format}`)).toEqual(["kernel kernel", "launches count", "estimated text", "extra name"]);
    expect(described(report, ["kernels[]"], { estimated_ns: "estimated" })!.columns.at(-1)).toMatchObject({ title: "estimated", format: "ns" });
  });
  it("without rows is nothing, without a description says so", () => {
    expect(render(<DescribedTable report={report} path="gemms[]" />)).toBe("");
    expect(render(<DescribedTable report={{ gemms: [{}] }} path="gemms[]" />)).toContain("did not describe");
  });
  it("is found by its rows and titles alone", () => expect(drawable(report)).toEqual(["kernels[]", "kernels[]#more"]));
});

describe("conditions", () => {
  const conditional = (...flags: string[]): Report => ({
    flags, stages: [{ name: "decode" }],
    tables: { "stages[]": { ...table("Stages", [column("name", "all", "text"), column("tokens", "tokens", "count", { if: "inference" }),
                                                column("steps", "steps", "count", { unless: "inference" })]),
                            titles: ["(if gpu) Stages by GPU time"], above: ["(unless gpu) On a CPU."], order: "steps" } },
  });
  it("are those that the report says hold", () => {
    const titles = (...flags: string[]) => described(conditional(...flags), ["stages[]"])!.columns.map(({ title }) => title);
    expect(titles("inference")).toEqual(["all", "tokens"]);
    expect(titles()).toEqual(["all", "steps"]);
  });
  it("choose the title, the lines above and the order as well", () => {
    expect(described(conditional("gpu"), ["stages[]"])).toMatchObject({ title: "Stages by GPU time", note: "", order: "-steps" });
    expect(described(conditional(), ["stages[]"])).toMatchObject({ title: "Stages", note: "On a CPU." });
  });
});

describe("cells", () => {
  const cell = (format: string, value: unknown, more: Row = {}) => cellText({ value, ...more }, { key: "value", title: "", format, error: "error" });
  it("have the formats of the terminal", () => {
    expect([cell("percent", 0.1234), cell("percent", 0.0001), cell("gain", 1e6),
            cell("gain", -1e6), cell("whole", 12.6), cell("ratio", 4), cell("s", 0.5), cell("amount", 2e9), cell("number", 0.25)])
      .toEqual(["12.3", "<0.1", "+1 MB", "-1 MB", "13", "4.0", "500 ms", "2 G", "0.25"]);
    expect([cell("times", 1.2), cellText({ value: 0 }, { key: "value", title: "", format: "ns", nonzero: true })]).toEqual(["1.20 x", "–"]);
    expect([cell("gauge", 0.5, { unit: "share" }), cell("gauge", 7, { unit: "" })]).toEqual(["50 %", "7"]);
    expect(cell("number", 12.34, { error: 0.4 })).toBe("12.3 ± 0.4");
    expect(cell("quantile", { value_s: 1, low_s: 0.5, high_s: 2 })).toBe("1 s (500 ms to 2 s)");
    expect(cell("quantile", { value_s: null, low_s: 0.5, high_s: null })).toBe("over 500 ms");
  });
  it("say what is not known, and nothing where there is nothing", () => {
    expect([cell("ns", null), cell("ns", undefined), cell("stage", null), cell("unknown", null), cell("first", null), cell("bound", "unknown")])
      .toEqual(["–", "", "(none)", "unknown", "", "–"]);
    expect([cell("file", "/a/b.py"), cell("first", "a, b"), cell("flag", true), cell("ns", NaN)]).toEqual(["b.py", "a", "yes", "–"]);
  });
});
