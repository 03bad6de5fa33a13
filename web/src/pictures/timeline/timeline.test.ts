// Slices as [begin, end, name, count, busy]; begin and end relative to the window.
import { firstAbove, type Range } from "../drawing";
import { describe, expect, it } from "vitest";
import type { Lane, RunData, Timeline } from "../../data";
import { around, askFor, fit, leastSpanNs, pan, pinch, serves, zoom } from "./input";
import { axisTicks, shortLabel } from "./lanes";
import {
  coarseFirst, factsOf, findSlices, inWindow, laneKey, laneTotal, makePatch, matches, nameTotals, neighbour, resolution, segments,
  rowsOf, sliceAt, stagePlaces, visibleRange,
} from "./patches";
import { gapOf, gaps } from "./gaps";
import { selectionOf } from "./selection";
import { firstPlaces } from "./view";

function lane(slices: [number, number, number, number?, number?][], kind: Lane["kind"] = "stream"): Lane {
  return {
    kind, group: "GPU 0", name: "stream 7", table: "kernel",
    begin: slices.map((s) => s[0]), end: slices.map((s) => s[1]), label: slices.map((s) => s[2]),
    stage: slices.map(() => 2), count: slices.map((s) => s[3] ?? 1), busy: slices.map((s) => s[4] ?? 1),
    id: slices.map((_, index) => index + 1), estimated: slices.map(() => 0),
  };
}
function timeline(window: [number, number], lanes: Lane[]): Timeline {
  return { run: [1000, 2000], window, names: ["gemm", "softmax", "decode"], lanes, curves: [], slices_in_window: 0 };
}
// The run: 0 … 1000 after its begin at 1000. A merged slice at 0 … 400 (10 slices, half covered), one at 600 … 700.
const overview = makePatch(timeline([1000, 2000], [lane([[0, 400, 0, 10, 0.5], [600, 700, 1]])]), 1000);
// 100 … 200 in detail: three slices.
const detail = makePatch(timeline([1100, 1200], [lane([[0, 20, 0], [30, 50, 1], [90, 100, 0]])]), 1000);
const key = laneKey(lane([]));

describe("window", () => {
  it("stays inside the run", () => {
    expect(fit([-50, 50], [0, 1000])).toEqual([0, 100]);
    expect(fit([950, 1050], [0, 1000])).toEqual([900, 1000]);
    expect(fit([-10, 5000], [0, 1000])).toEqual([0, 1000]);
    expect(fit([500, 500], [0, 1000])).toEqual([495, 505]);
  });
  it("zooms around the pointer", () => {
    expect(zoom([0, 1000], 250, 0.5, [0, 1000])).toEqual([125, 625]);
    expect(zoom([125, 625], 250, 2, [0, 1000])).toEqual([0, 1000]);
    const [from, to] = zoom([499, 510], 505, 0.001, [0, 1000]);
    expect(to - from).toBe(leastSpanNs);
  });
  it("pans and stops at the ends", () => {
    expect(pan([100, 200], 50, [0, 1000])).toEqual([150, 250]);
    expect(pan([100, 200], 5000, [0, 1000])).toEqual([900, 1000]);
  });
  it("leaves room around a slice", () => expect(around([100, 200], [0, 1000])).toEqual([85, 215]));
  it("pinches: both fingers keep their time", () => {
    // 100 pixels wide; times 200 and 400 under pixels 25 and 75: 4 ns per pixel.
    expect(pinch([200, 400], [25, 75], 100, [0, 1000])).toEqual([100, 500]);
  });
});

describe("patches", () => {
  it("the narrowest patch is shown where it is known", () => {
    const parts = segments([overview, detail], [50, 300]);
    const shown = parts.map((part) => [part.from, part.to, part.patch === detail]);
    expect(shown).toEqual([[50, 100, false], [100, 200, true], [200, 300, false]]);
    expect(segments([overview], [0, 1000])).toHaveLength(1);
    expect(coarseFirst([detail, overview])).toEqual([overview, detail]);
  });
  it("binary search", () => {
    const values = Float64Array.from([1, 3, 3, 7]);
    expect([0, 1, 2, 3, 6, 7, 9].map((limit) => firstAbove(values, limit))).toEqual([0, 1, 1, 3, 3, 4, 4]);
  });
  it("finds the slices in view, and only them", () => {
    const columns = detail.lanes.get(key)!;   // 100-120, 130-150, 190-200
    expect(visibleRange(columns, 100, 200)).toEqual([0, 3]);
    expect(visibleRange(columns, 120, 130)).toEqual([1, 1]);
    expect(visibleRange(columns, 119, 131)).toEqual([0, 2]);
    expect(visibleRange(columns, 160, 170)).toEqual([2, 2]);
  });
  it("hits the slice under the pointer, or one within reach", () => {
    const parts = segments([overview, detail], [0, 1000]);
    expect(sliceAt(parts, key, 110, 0)).toEqual({ patch: detail, lane: key, index: 0 });
    expect(sliceAt(parts, key, 125, 0)).toBeNull();
    expect(sliceAt(parts, key, 126, 5)?.index).toBe(1);
    expect(sliceAt(parts, key, 123, 5)?.index).toBe(0);
    expect(sliceAt(parts, key, 50, 0)?.patch).toBe(overview);
    expect(sliceAt(parts, "no such lane", 50, 0)).toBeNull();
  });
  it("the keyboard walks from slice to slice, across patches", () => {
    const parts = segments([overview, detail], [0, 1000]);
    const begins: number[] = [];
    for (let at = neighbour(parts, key, -1, 1); at; at = neighbour(parts, key, factsOf(at).begin, 1)) begins.push(factsOf(at).begin);
    expect(begins).toEqual([0, 100, 130, 190, 600]);
    expect(factsOf(neighbour(parts, key, 600, -1)!).begin).toBe(190);
    expect(factsOf(neighbour(parts, key, 130, -1)!).begin).toBe(100);
    expect(neighbour(parts, key, 600, 1)).toBeNull();
  });
});

describe("axis", () => {
  it("far into the run, a short window counts from its first tick", () => {
    expect(axisTicks([0, 4e6], 440).map((tick) => tick.label)).toEqual(["0 ms", "1 ms", "2 ms", "3 ms", "4 ms"]);
    const far = axisTicks([4_569_485_500, 4_569_486_700], 600);
    expect(far.map((tick) => tick.label)).toEqual(["4.5694855 s", "+0.5 µs", "+1.0 µs"]);
  });
});

describe("a selected part of the time", () => {
  // Two streams: 0-40 gemm, 60-100 softmax; 20-80 gemm (10 slices, half of its time). A copy 90-110. Idle 110-120.
  const names = ["gemm", "softmax", "decode", "copy", "GPU idle, waiting for CPU", "copy only, no kernel"];
  const stream = (name: string, slices: Parameters<typeof lane>[0]): Lane => ({ ...lane(slices), name });
  const of: Timeline = {
    ...timeline([1000, 1200], [
      stream("stream 1", [[0, 40, 0], [60, 100, 1]]), stream("stream 2", [[20, 80, 0, 10, 0.5]]),
      { ...lane([[90, 110, 3]], "copies"), name: "copies" }, { ...lane([[100, 110, 5], [110, 120, 4]], "idle"), name: "gaps" },
      { ...lane([[0, 120, 2]], "stages"), group: "python" },
    ]), names, classes: ["GEMM", "softmax, loss, sampling", null, null, null, null],
  };
  const patch = makePatch(of, 1000), groups = rowsOf([patch]);
  it("sums up kernels by class, stage and name, and no time is lost", () => {
    const { span, devices: [gpu], steps } = selectionOf([patch], groups, [0, 200]);
    expect(span).toBe(200);
    expect(gpu!.kernels).toEqual({ name: "kernels", ns: 40 + 40 + 30, count: 12 });
    expect(gpu!.byClass).toEqual([{ name: "GEMM", ns: 70, count: 11 }, { name: "softmax, loss, sampling", ns: 40, count: 1 }]);
    for (const rows of [gpu!.byClass, gpu!.byStage, gpu!.byName]) expect(rows.reduce((sum, row) => sum + row.ns, 0)).toBe(gpu!.kernels.ns);
    expect(gpu!.copies.ns).toBe(20);
    expect(gpu!.gaps).toEqual([{ name: "copy only, no kernel", ns: 10, count: 1 }, { name: "GPU idle, waiting for CPU", ns: 10, count: 1 }]);
    expect(steps).toEqual([{ name: "decode", ns: 120, count: 1 }]);
  });
  it("busy is the time with any work, overlaps once", () => {
    // 0-40, half of 40-60, 60-110.
    expect(selectionOf([patch], groups, [0, 200]).devices[0]!.busy).toBeCloseTo((40 + 10 + 50) / 200);
    expect(selectionOf([patch], groups, [0, 40]).devices[0]!.busy).toBe(1);
    expect(selectionOf([patch], groups, [110, 200]).devices[0]!.busy).toBe(0);
  });
  it("parts add up to the whole", () => {
    const sum = (ranges: Range[]) => ranges.reduce((all, range) => all + selectionOf([patch], groups, range).devices[0]!.kernels.ns, 0);
    expect(sum([[0, 33], [33, 70], [70, 200]])).toBeCloseTo(sum([[0, 200]]));
  });
  it("an unknown cause of a gap is called unknown", () => expect(gaps[gapOf("the moon")]!.name).toBe("GPU idle, cause unknown"));
});

it("lanes with nothing in the window are left out, but not the one in use", () => {
  const lanes = (range: Range, used?: string) => inWindow(rowsOf([overview]), segments([overview], range), [], used).flatMap((group) => group.lanes);
  expect(lanes([0, 1000])).toHaveLength(1);
  expect(lanes([450, 550])).toHaveLength(0);
  expect(lanes([450, 550], key)).toHaveLength(1);
});

describe("where the timeline opens", () => {
  const detail = (stage: string, which: "median" | "slowest", window: [number, number]) => ({
    stage, which, step_id: 1, timeline: timeline(window, []) });
  const run = (stages: object[]) => ({
    timeline: timeline([1000, 2000], []), report: { stages },
    details: [detail("prefill", "median", [1000, 1100]), detail("decode", "median", [1500, 1520]), detail("decode", "slowest", [1700, 1790])],
  }) as unknown as RunData;
  it("on the median step of the stage with most time, warm-up apart", () => {
    const stages = [{ name: "load", steps: 1, step_p50_ns: 9000 }, { name: "prefill", steps: 2, step_p50_ns: 100, time_ns: 900 },
                    { name: "decode", steps: 50, step_p50_ns: 20, time_ns: 800 }];
    expect(firstPlaces(run(stages)).first).toEqual([500, 520]);
    expect(firstPlaces(run(stages.slice(0, 2))).first).toEqual([0, 100]);
  });
  it("on the whole run where no step is known", () => {
    expect(firstPlaces({ ...run([]), details: [] }).first).toBeNull();
    expect(firstPlaces(run([])).first).toEqual([0, 100]);
  });
});

it("names of lanes keep what tells them apart", () => {
  const name = "ranges, python3 4242, depth 1";
  expect([300, 150, 80].map((width) => shortLabel(name, width))).toEqual([name, "ranges, depth 1", "depth 1"]);
  expect(shortLabel("gaps in steps, always", 120)).toBe("gaps in steps, always");
});

describe("questions to the server", () => {
  const patch = (from: number, to: number) => ({ ...overview, from, to });
  it("an answer serves while it covers the window and is not much coarser", () => {
    expect(serves(patch(0, 200), [50, 150])).toBe(true);
    expect(serves(patch(0, 200), [150, 250])).toBe(false);
    expect(serves(patch(0, 1000), [50, 150])).toBe(false);
    expect(serves(null, [0, 1])).toBe(false);
  });
  it("ask for the window with its surroundings, inside the run", () => {
    expect(askFor([400, 500], [0, 1000])).toEqual([375, 525]);
    expect(askFor([0, 100], [0, 1000])).toEqual([0, 125]);
    expect(askFor([0, 1000], [0, 1000])).toEqual([0, 1000]);
  });
});

describe("what is said about slices", () => {
  it("one of them", () => {
    expect(factsOf({ patch: overview, lane: key, index: 0 })).toMatchObject(
      { name: "gemm", stage: "decode", begin: 0, duration: 400, count: 10, busy: 0.5, table: "kernel" });
  });
  it("totals of a lane are clipped to the window and leave gaps inside merged slices out", () => {
    // 0-100 of the merged one: 50; detail 20 + 20 + 10; 200-400: 100; 600-700: 100.
    const total = laneTotal(segments([overview, detail], [0, 1000]), key);
    expect(total.covered).toBe(50 + 50 + 100 + 100);
    expect(laneTotal(segments([overview], [0, 1000]), key)).toEqual({ covered: 300, slices: 11, estimated: 0 });
    expect(laneTotal(segments([overview], [300, 650]), key).covered).toBe(100);
  });
  it("by name, most first", () => {
    const rows = nameTotals(segments([detail], [100, 200]), key, 5);
    expect(rows.map((row) => [row.name, row.covered, row.slices, row.longest])).toEqual([["gemm", 30, 2, 20], ["softmax", 20, 1, 20]]);
  });
  it("search is by part of the name in any case; nothing finds nothing", () => {
    expect([...matches(["Gemm_128", "softmax"], "GEMM")]).toEqual([1, 0]);
    expect([...matches(["Gemm_128"], " ")]).toEqual([0]);
    const found = findSlices(segments([overview], [0, 1000]), [key], "gemm");
    expect(found).toMatchObject([{ kind: "stream", covered: 200, slices: 10, longest: { index: 0 } }]);
  });
  it("knows where stages lie", () => {
    const stages = lane([[0, 100, 2], [300, 400, 1], [500, 900, 2]], "stages");
    expect(stagePlaces(makePatch(timeline([1000, 2000], [stages]), 1000))).toEqual(
      [{ name: "decode", window: [0, 900] }, { name: "softmax", window: [300, 400] }]);
    expect(stagePlaces(overview)).toEqual([]);
  });
  it("says how far the picture is merged", () => {
    expect(resolution(segments([overview], [0, 1000]), [key])).toEqual({ shown: 2, all: 11, mergedNs: 400 });
  });
});
