// Tables of hardware counters: what they say of a run with counters, of one without, and of names that are hostile.
import { render } from "preact-render-to-string";
import { describe, expect, it, vi } from "vitest";
import type { PageData, Report, Roofline, RunData } from "../../src/data";
import { RooflineChart, RooflineLegend } from "../../src/pictures/roofline";
import { Counters, measuredText, placeRows, reasonsText, withError } from "../../src/sections/counters";
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
    "stages[]": table("stage:text steps:count measured:count"),
    "stages[]#memory": table("stage:text work.time_ns:ns of_bandwidth:percent redundancy:times occupancy:percent",
                             { stage: "stage", "work.time_ns": "time", of_bandwidth: "peak %", redundancy: "factor", occupancy: "occup. %" }),
    "stages[].values[]": table("counter:text value:number spread:percent method:text"),
    "evidence[]": table("explanation:text"),
    "evidence[]#table": table("stage:text quantity:text analytic:value counted:value ratio:ratio3",
                              { stage: "one step of", analytic: "analytic", counted: "counted", ratio: "counted/analytic" }),
    "unmixed[]": table("name:kernel time_ns:ns"), "stalls[]": table("reasons:rows"),
    "stalls[]#table": table("kernel:kernel samples:count share:percent", { kernel: "kernel", samples: "samples", share: "share %" }),
    "stalls[].places[]#table": table("kernel:kernel place:text reason:text samples:count share:percent", { kernel: "kernel", place: "place" }),
  }).map(([path, described]) => [`hardware_counters.${path}`, described])),
  stages: [{ name: "decode", mfu: 0.0119 }], devices: [{ peak_bandwidth: 4e12 }],
  hardware_counters: {
    method: "range", set: "light", chip: "GH100", notes: [hostile], windows: 48, samples: 0, period_ns: null, cost_ns: 53e6,
    stages: [{ stage: "decode", steps: 512, measured: 24, method: "range", hfu: 0.012, redundancy: 1.2, of_bandwidth: 0.75, occupancy: null,
      work: { time_ns: 2e6, flops: 12e9, dram_bytes: 6e9, dram_bytes_per_s: 3e12, dram_intensity: 2, bound: "memory", of_roof: 0.75 },
      values: [value("dram_read_bytes", 5.7e9, "bytes", 0.002), value("dram_write_bytes", 0.3e9, "bytes", 0.031),
               value("tensor_active_pct", 3.25, "%"), value("l2_hit_pct", 12.5, "%")] }],
    ranges: [], evidence: [{ stage: "decode", quantity: "bytes", unit: "bytes", analytic: 5e9, shapes: null, counted: 6e9, ratio: 1.2, explanation: hostile }],
    unmixed: [{ name: "gemm", time_ns: 7e8, values: [{ ...value("dram_read_bytes", 2.1e12, "bytes/s"), error: 0.034 }] }], unmixed_why: null,
    occupancy: [{ kernel: "gemm", achieved: 0.21, theoretical: 0.25, limiter: "registers" }],
    stall_samples: 1000, stall_unknown: 20,
    stalls: [{ kernel: hostile, samples: 800, share: 0.8, reasons: [{ reason: "long_scoreboard", share: 0.61 }, { reason: "wait", share: 0.2 }],
      places: [{ kernel: hostile, place: "+0x2b0", reason: "wait", samples: 100, share: 0.125 },
               { kernel: hostile, place: "gemm.cu:42", reason: "long_scoreboard", samples: 300, share: 0.375 }] }],
  },
};
const view = (shown: Report) => {
  const data = { name: "x", report: shown } as RunData, page: PageData = { made_by: "", runs: [data], diffs: [] };
  return { source: sourceOf(page), index: 0, data };
};

describe("the section", () => {
  const html = render(<Counters view={view(report)} />);
  it("says how it was measured, and every table", () => {
    expect(measuredText(report)).toBe("method range; set light; chip GH100; 48 windows read; reading took 53 ms from the program; "
      + "warps were looked at 1\u202f000 times, 2 % of it in code that is not known; bandwidth is of the device's 4 TB/s");
    for (const text of ["24 of 512", "2 ms", ">75.0<", "1.20 x", ">5 GB<", "1.200", "2.1 TB/s ± 3.4 %", "registers", "long_scoreboard 61 %, wait 20 %", "gemm.cu:42", "+0x2b0"]) {
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
  it("places come from all kernels, most samples first", () => {
    expect(placeRows(report["hardware_counters"].stalls).map(({ place }) => place)).toEqual(["gemm.cu:42", "+0x2b0"]);
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
