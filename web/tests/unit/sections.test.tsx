// Sections as text: what they say with data, without, and with data of a stranger.
import { render } from "preact-render-to-string";
import { describe, expect, it, vi } from "vitest";
import { Masthead } from "../../src/app";
import type { DiffRow, Finding, PageData, Report, RunData } from "../../src/data";
import { bySignificance } from "../../src/sections/comparison";
import { keyFigures } from "../../src/sections/figures";
import { cost, flat } from "../../src/sections/run";
import { bars, stageNumbers } from "../../src/sections/stages";
import { FindingCard } from "../../src/sections/summary";
import { sourceOf } from "../../src/sources";
import { column, matching, quoted, sorted } from "../../src/table";

vi.stubGlobal("matchMedia", () => ({ matches: false }));

const finding: Finding = {
  rule: "wide_weights", stage: "decode", part: null, verdict: "found", severity: "high", title: "<img src=x onerror=1> \u202Eevil",
  text: "text", gain: { ns: 1e6, of_ns: 2.174e6, upper_bound: true, how: "4 of 8" }, advice: ["use bfloat16"], next: "llmprof record",
  evidence: [{ name: "decode.mbu", what: "bandwidth", value: 0.76, unit: "1", source: "measured", of: "4.80 TB/s, spec", rows: "SELECT 1", why: null },
             { name: "x", what: "energy", value: null, unit: "J", source: "measured", of: null, rows: null, why: "no power was read" }],
};
const run = (report: Report): RunData => ({ name: "it's", report } as RunData);
const page = (report: Report): PageData => ({ made_by: "", runs: [run(report)], diffs: [] });
const view = (report: Report) => ({ source: sourceOf(page(report)), index: 0, data: run(report) });

describe("a finding", () => {
  const html = render(<FindingCard view={view({})} finding={finding} open />);
  it("says severity in words, gain with its stage, evidence with source and denominator", () => {
    for (const text of ["high", "saves at most 1 ms", "46 %", "of the time of decode", "76 %", "4.80 TB/s, spec", "measured", "no power was read"]) {
      expect(html).toContain(text);
    }
  });
  it("shows names as text, hidden characters written out", () => {
    expect(html).not.toContain("<img");
    expect(html).toContain("⟨U+202E⟩");
  });
  it("hands over the query as a command that a shell takes", () => {
    expect(quoted("SELECT 'a'")).toBe("\"SELECT 'a'\"");
    expect(quoted("a'b $(x)")).toBe("'a'\\''b $(x)'");
    expect(quoted("runs/a.llmprof")).toBe("runs/a.llmprof");
  });
});

describe("the head of the page", () => {
  const html = (report: Report) => render(<Masthead view={view(report)} onPick={() => undefined} />);
  it("says the job as the report does, where there is one", () => {
    const sentence = "2 ranks on 2 GPUs: tensor parallel 2. Known by: --parallel tp=2.";
    expect(html({ job: { sentence } })).toContain(sentence);
    expect(html({ job: { sentence: null } })).not.toContain("Job");
    expect(html({})).not.toContain("Job");
  });
});

describe("the key figures", () => {
  const decode = { name: "decode", confidence: 0.9, steps: 500, step_p50_ns: 2e6, tokens_per_s: 490.4, tpot_p50_ns: 2.04e6, mfu: 0.012, mbu: 0.254, busy: 0.49 };
  const prefill = { name: "prefill", confidence: 0.9, steps: 5, step_p50_ns: 1e7, time_ns: 9e9, ttft_ns: 1e7, mfu: 0.5 };
  const texts = (report: Report) => keyFigures(report).map(({ name, value, of }) => `${name} ${value} ${of}`.trim());
  it("are those of decode, with time to first token", () => {
    expect(texts({ life: { time_ns: 4.56e9 }, devices: [{ kind: "gpu" }], stages: [prefill, decode],
                   measures: [{ name: "run.device_memory_peak", value: 4.15e9 } as never] }))
      .toEqual(["Wall time 4.56 s", "Tokens/s 490 decode", "TTFT 10 ms median", "TPOT 2.04 ms median", "MFU 1.2 % decode", "MBU 25.4 % decode",
                "GPU busy 49 % decode", "GPU memory peak 4.15 GB"]);
  });
  it("are those of requests where there are some: steps are no requests", () => {
    const latencies = [{ source: "client", metric: "TTFT", p50_ns: 9e9 }, { source: "server", metric: "TTFT", p50_ns: 1.2e9 },
                       { source: "server", metric: "TPOT", p50_ns: 3e7 }];
    expect(texts({ stages: [prefill, decode], requests: { source: "server", output_tokens_per_s: 120, latencies } } as never))
      .toEqual(["Tokens/s 120 output", "TTFT 1.2 s median of requests", "TPOT 30 ms median of requests", "MFU 1.2 % decode", "MBU 25.4 % decode", "GPU busy 49 % decode"]
        .map((text) => text.replace("GPU busy", "Busy")));
  });
  it("are only those that are known, and of no stage that is a guess", () => {
    expect(texts({})).toEqual([]);
    expect(texts({ coverage: { wall_ns: 1e9 }, stages: [{ ...decode, confidence: 0.5 }] })).toEqual(["Wall time 1 s"]);
    expect(texts({ stages: [{ name: "steps", time_ns: 1, step_p50_ns: 5e6, mfu: null }] })).toEqual(["Step 5 ms steps, median"]);
  });
  it("of training are of the median step, the first apart", () => {
    const steps = [900, 100, 102, 98].map((ms) => ({ total_ns: ms * 1e6, tokens: 1000 }));
    expect(texts({ training: [{ steps }], stages: [{ name: "backward", time_ns: 5, busy: 0.9 }] } as Report))
      .toEqual(["Step 100 ms median", "Tokens/s 10 k median step", "Busy 90 % backward"]);
  });
});

describe("the waterfall", () => {
  const waterfall = { measured_ns: 100, mean_ns: 50, samples: 2, floor_ns: 40, why: null,
    terms: [{ label: "idle", name: "gaps", share: 0.5, mean_ns: 25 }, { label: "copies", name: "copies", share: 0, mean_ns: 0 },
            { label: "faster", name: "faster_than_floor", share: -0.1, mean_ns: -5 }, { label: "above", name: "above_floor", share: 0.2, mean_ns: 10 }] };
  it("hangs bars from all of it down to the floor, and adds up", () => {
    const all = bars(waterfall);
    expect(all.map((bar) => bar["label"])).toEqual(["idle", "faster", "above", "floor: at the device's peaks"]);
    expect(all.reduce((sum, bar) => sum + (bar["share"] ?? 0), 0)).toBeCloseTo(1, 12);
    expect([all[0]!["from"], all[0]!["to"], all[1]!["to"]]).toEqual([0.5, 1, 0.6]);
    expect(all[3]!["to"]).toBeCloseTo(0.4, 12);
  });
  it("does not invent a floor", () => expect(bars({ ...waterfall, floor_ns: null, why: "no model" }).at(-1)).toMatchObject({ share: null, why: "no model" }));
});

describe("a stage card", () => {
  const column = (key: string, title: string, format: string) => ({ key, title, format, meaning: "" });
  const tables = {
    "stages[]#times": { notes: [], columns: [column("busy", "busy %", "percent"), column("latency_p50_ns", "TPOT p50", "ns"), column("ttft_ns", "TTFT", "ns")] },
    "stages[]#efficiency": { notes: [], columns: [column("mfu", "MFU %", "percent")] },
    "telemetry.stages[]": { notes: [], columns: [column("joules_per_token", "J/token", "number")] },
  };
  const telemetry = { stages: [{ stage: "decode", joules_per_token: null, energy_why: "no power was read" }] };
  const numbers = (stage: object) => stageNumbers({ tables, telemetry }, stage);
  it("has what belongs to its stage, as the report describes it, the latency first", () => {
    const terms = numbers({ ttft_ns: null, latency_p50_ns: 2e6, mfu: 0.5, busy: 0.3 }).map((each) => `${each.term} ${each.text}`);
    expect(terms).toEqual(["TPOT p50 2 ms", "MFU % 50.0", "busy % 30.0"]);
    expect(numbers({ name: "x", ttft_ns: 1e6 })[0]).toMatchObject({ term: "TTFT", text: "1 ms" });
  });
  it("says why something is unknown", () => {
    expect(numbers({ name: "decode", mfu: null, why: "no model" })).toEqual(
      [{ term: "MFU %", text: "–", why: "no model" }, { term: "J/token", text: "–", why: "no power was read" }]);
    expect(stageNumbers({}, {})).toEqual([]);
  });
});

describe("tables", () => {
  const columns = [column("count", "n", "n"), column("name", "name", "name")];
  const rows = [{ n: null, name: "b10" }, { n: 2, name: "b9" }, { n: 1, name: "A" }];
  it("sort numbers and names, unknown last both ways", () => {
    expect(sorted(rows, { key: "n", down: true }).map((row) => row["n"])).toEqual([2, 1, null]);
    expect(sorted(rows, { key: "n", down: false }).map((row) => row["n"])).toEqual([1, 2, null]);
    expect(sorted(rows, { key: "name", down: false }).map((row) => row["name"])).toEqual(["A", "b9", "b10"]);
  });
  it("filter by text of any case", () => expect(matching(rows, columns, " B1 ").map((row) => row["name"])).toEqual(["b10"]));
});

describe("the environment", () => {
  it("lays nested values flat, sizes with their unit", () => {
    expect(flat({ cpu: { name: "X", quota: null }, memory: { bytes: 2e9 }, list: [1, 2], caches: [{ level: 1 }] }))
      .toEqual([{ name: "cpu.name", value: "X" }, { name: "memory.bytes", value: "2 GB" }, { name: "list", value: "1, 2" },
                { name: "caches.0.level", value: "1" }]);
  });
});

describe("the embedded source", () => {
  it("answers from the page, and says so where it cannot", async () => {
    const source = sourceOf(page({}));
    expect(source.live).toBe(false);
    expect(source.runs()).toEqual(["it's"]);
    await expect(source.run(7)).rejects.toThrow("no run 7");
    await expect(source.rows(0, "SELECT 1")).rejects.toThrow("llmprof query");
  });
});

describe("a comparison", () => {
  it("begins with what changed for certain, stages before single numbers", () => {
    const row = (name: string, kind: DiffRow["kind"], significant: boolean) => ({ name, kind, significant } as DiffRow);
    const rows = [row("run.wall", "measure", false), row("run.kernels", "measure", true), row("layers.7", "module", true), row("decode", "stage", true)];
    expect(bySignificance(rows).map((each) => each.name)).toEqual(["decode", "layers.7", "run.kernels", "run.wall"]);
  });
});

describe("what recording cost", () => {
  const row = { delay_ns: 1000, delay_share: 0.001, log_bytes: 10, writer_cpu_ns: 1, recorder_cpu_ns: 2 };
  it("is measured where the run measured it, and beyond chance or not", () => {
    const text = cost({ ...row, stages: [{ name: "decode", measured: { ratio: 1.05, low: 1.04, high: 1.06 } },
                                         { name: "prefill", measured: { ratio: 0.99, low: 0.95, high: 1.03 } }] });
    expect(text).toContain("a step of decode is 1.050 [1.040, 1.060] times as long");
    expect(text).toContain("a step of prefill cannot be told from nothing (0.990 [0.950, 1.030] times as long");
  });
  it("is an estimate of events and timed kernels elsewhere", () => {
    const text = cost({ ...row, timing_ns: 57e6, timed_kernels: 47488 });
    expect(text).toContain("Events delayed threads by an estimated 1 µs");
    expect(text).toContain("more, if each takes what it does on an H200");
    expect(text).not.toContain("Measured");
  });
});
