// Tables of hardware counters: what they say of a run with counters, of one without, and of names that are hostile.
import { render } from "preact-render-to-string";
import { describe, expect, it, vi } from "vitest";
import type { PageData, Report, Roofline, RunData } from "../../src/data";
import { RooflineChart, RooflineLegend } from "../../src/pictures/roofline";
import { Counters, measuredText, placeRows, placeText, ratioText, reasonsText, stageRows, withError } from "../../src/sections/counters";
import { sourceOf } from "../../src/sources";

vi.stubGlobal("matchMedia", () => ({ matches: false }));  // tables ask whether the page is printed

const hostile = "<img src=x onerror=alert(1)>\u202e";
const value = (counter: string, amount: number, unit: string, spread: number | null = null) =>
  ({ counter, value: amount, unit, denominator: null, spread, error: null, occurrences: 24, method: "range" });
// "kernel:kernel achieved:percent": formats as the report describes them; `titles` of the terminal.
const table = (formats: string, titles: Record<string, string> = {}) => ({ title: null, notes: [], columns: formats.split(" ").map((each) => {
  const [key = "", format] = each.split(":");
  return { key, format, title: titles[key] ?? null, meaning: "" };
}) });
const report: Report = {
  tables: Object.fromEntries(Object.entries({
    "occupancy[]": table("kernel:kernel achieved:percent limiter:text", { kernel: "kernel", achieved: "achieved %", limiter: "limited by" }),
    "stages[]": table("stage:text steps:count measured:count hfu:percent redundancy:number"),
    "stages[].work": table("time_ns:ns flops:amount dram_bytes:bytes dram_bytes_per_s:giga bound:text of_roof:percent"),
    "stages[].values[]": table("counter:text value:number spread:percent method:text"),
    "evidence[]": table("stage:text quantity:text analytic:number counted:number explanation:text"),
    "unmixed[]": table("name:kernel time_ns:ns"), "stalls[]": table("kernel:kernel samples:count share:percent reasons:rows"),
    "stalls[].places[]": table("reason:text samples:count share:percent"),
  }).map(([path, described]) => [`hardware_counters.${path}`, described])),
  stages: [{ name: "decode", mfu: 0.0119 }], devices: [{ peak_bandwidth: 4e12 }],
  hardware_counters: {
    method: "range", set: "light", chip: "GH100", notes: [hostile], windows: 48, samples: 0, period_ns: null, cost_ns: 53e6,
    stages: [{ stage: "decode", steps: 512, measured: 24, method: "range", hfu: 0.012, redundancy: 1.2,
      work: { time_ns: 2e6, flops: 12e9, dram_bytes: 6e9, dram_bytes_per_s: 3e12, dram_intensity: 2, bound: "memory", of_roof: 0.75 },
      values: [value("dram_read_bytes", 5.7e9, "bytes", 0.002), value("dram_write_bytes", 0.3e9, "bytes", 0.031),
               value("tensor_active_pct", 3.25, "%"), value("l2_hit_pct", 12.5, "%")] }],
    ranges: [], evidence: [{ stage: "decode", quantity: "bytes", unit: "bytes", analytic: 5e9, shapes: null, counted: 6e9, explanation: hostile }],
    unmixed: [{ name: "gemm", time_ns: 7e8, values: [{ ...value("dram_read_bytes", 2.1e12, "bytes/s"), error: 0.034 }] }], unmixed_why: null,
    occupancy: [{ kernel: "gemm", achieved: 0.21, theoretical: 0.25, limiter: "registers" }],
    stall_samples: 1000, stall_unknown: 20,
    stalls: [{ kernel: hostile, samples: 800, share: 0.8, reasons: [{ reason: "long_scoreboard", share: 0.61 }, { reason: "wait", share: 0.2 }],
      places: [{ file: null, line: null, pc_offset: 0x2b0, reason: "wait", samples: 100, share: 0.125 },
               { file: "gemm.cu", line: 42, pc_offset: 0x1a0, reason: "long_scoreboard", samples: 300, share: 0.375 }] }],
  },
};
const view = (shown: Report) => {
  const data = { name: "x", report: shown } as RunData, page: PageData = { made_by: "", runs: [data], diffs: [] };
  return { source: sourceOf(page), index: 0, data };
};

describe("counters of stages", () => {
  const [row] = stageRows(report);
  it("stand beside what must be", () => {
    expect(row).toMatchObject({ stage: "decode", measured: 24, steps: 512, must_move: 5e9, redundancy: 1.2, hfu: 0.012, mfu: 0.0119 });
    expect(row!["of_bandwidth"]).toBe(0.75);       // 3 of 4 TB/s
    expect(row!["spread"]).toBe(0.031);            // the widest
    expect(row!["tensor"]).toBeCloseTo(0.0325, 12);
    expect(row!["occupancy"]).toBeNull();          // not counted is not 0
  });
  it("without a peak have no share of it", () => expect(stageRows({ ...report, devices: [] })[0]!["of_bandwidth"]).toBeNull());
});

describe("the section", () => {
  const html = render(<Counters view={view(report)} />);
  it("says how it was measured, and every table", () => {
    expect(measuredText(report)).toBe("method range; set light; chip GH100; 48 windows read; reading took 53 ms from the program; "
      + "warps were looked at 1\u202f000 times, 2 % of it in code that is not known; bandwidth is of the device's 4 TB/s");
    for (const text of ["24 of 512", "1.20 x", "1.200 x", "2.1 TB/s ± 3.4 %", "registers", "long_scoreboard 61 %, wait 20 %", "gemm.cu:42", "+0x2b0"]) {
      expect(html).toContain(text);
    }
  });
  it("shows names as text", () => {
    expect(html).not.toContain("<img");
    expect(html).not.toContain("\u202e");
  });
  it("of a run without counters says how to take them", () => {
    const empty = render(<Counters view={view({ hardware_counters: null })} />);
    expect(empty).toContain("llmprof record --counters light");
    expect(empty).not.toContain("<table");
  });
  it("survives data that is not there", () => expect(render(<Counters view={view({ hardware_counters: {} })} />)).not.toMatch(/NaN|undefined/));
});

describe("cells", () => {
  it("an error that is not known is not none", () => expect(withError({ value: 30, unit: "%", error: null })).toBe("30 % ± ?"));
  it("evidence that lacks one side has no ratio", () => expect(ratioText({ counted: 1, analytic: null })).toBe("–"));
  it("places come from all kernels, most samples first", () => {
    expect(placeRows(report["hardware_counters"].stalls).map(placeText)).toEqual(["gemm.cu:42", "+0x2b0"]);
    expect(placeText({ file: "a.cu", line: null })).toBe("a.cu");
    expect(reasonsText({ reasons: [] })).toBe("");
  });
});

describe("the roofline", () => {
  const point = { kind: "stage" as const, name: "decode", stage: "decode", intensity: 2, flops_per_s: 6e12, time_ns: 1e9 };
  const roofline: Roofline = { device: "H200", why: null, roofs: [],
    points: [{ ...point, source: "analytic", level: null }, { ...point, intensity: 1, source: "counters", level: "l2" }] };
  it("has a key for each level that was counted", () => {
    const html = render(<RooflineLegend kinds={["stage"]} levels={["dram", "l2"]} stages={[]} off={new Set()} onToggle={() => undefined} />);
    expect(html).toContain("counted, DRAM");
    expect(html).toContain('stroke-dasharray="4 2"');
  });
  it("says what outlines are, only where there are some", () => {
    expect(render(<RooflineChart roofline={roofline} />)).toContain("counted, L2");
    expect(render(<RooflineChart roofline={roofline} />)).toContain("Outlines:");
    expect(render(<RooflineChart roofline={{ ...roofline, points: roofline.points.slice(0, 1) }} />)).not.toContain("Outlines:");
  });
});
