// The markup of the pictures without a browser: names are text, and nothing known is said in words.
import { render } from "preact-render-to-string";
import { describe, expect, it } from "vitest";
import type { Flame, Report, Roofline } from "../data";
import { MemoryChart, Sparkline, StepCurves, TelemetryCurves } from "./charts";
import { FlameGraph } from "./flame/view";
import { RooflineChart } from "./roofline";

const hostile = "<img src=x onerror=alert(1)>\u202e";
const flame: Flame = {
  names: ["all", "root", hostile, "kernel"], parent: [-1, 0], name: [0, 2], kind: [1, 3],
  self: [[0, 5], [0, 0], [0, 0]], total: [5, 0, 0], merged: [0, 0, 0], why: null,
};
const roofline: Roofline = {
  device: hostile, why: null, roofs: [{ name: hostile, flops_per_s: 1e12, bytes_per_s: null, source: "spec" }],
  points: [{ kind: "kernel", name: hostile, stage: hostile, intensity: 1, flops_per_s: 1e9, time_ns: 1, source: "shapes" }],
};
const steps = { stage: hostile, steps: 2, begin_ns: [0, 10], duration_ns: [3, 4], batch: [1, 0], context: [0, 0] };
const curve = { group: hostile, name: hostile, unit: "W", ts: [0, 1], low: [1, 1], high: [2, 2] };

describe("names from a run", () => {
  it.each([
    ["flame graph", <FlameGraph flame={flame} />], ["roofline", <RooflineChart roofline={roofline} />],
    ["steps", <StepCurves curves={[steps]} />], ["telemetry", <TelemetryCurves curves={[curve]} />],
    ["sparkline", <Sparkline values={[1, 2]} label={`steps of ${"decode"}`} />],
  ])("%s: are text, never markup, and show what would hide", (_, picture) => {
    const html = render(picture);
    expect(html).not.toContain("<img");
    expect(html).not.toContain("\u202e");
  });
  it("are shown with the number of what would hide", () => {
    expect(render(<StepCurves curves={[steps]} />)).toContain("&lt;img src=x onerror=alert(1)>⟨U+202E⟩");
  });
});

describe("nothing known", () => {
  it("is said", () => {
    const empty: Flame = { ...flame, names: [], parent: [], name: [], kind: [], self: [[], [], []], why: "recorded without --stacks" };
    expect(render(<FlameGraph flame={empty} />)).toBe("<p>There are no call paths: recorded without --stacks</p>");
    expect(render(<MemoryChart report={{} as Report} curves={[]} />)).toBe("<p>No memory over time was recorded.</p>");
    expect(render(<TelemetryCurves curves={[]} />)).toBe("<p>No readings over time were recorded.</p>");
    expect(render(<StepCurves curves={[]} />)).toBe("");
  });
  it("no number is drawn as NaN", () => {
    for (const values of [[], [5], [5, 5], [NaN, 1, 2]]) expect(render(<Sparkline values={values} label="x" />)).not.toMatch(/NaN|Infinity/);
  });
});
