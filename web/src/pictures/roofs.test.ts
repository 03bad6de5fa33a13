import { describe, expect, it } from "vitest";
import type { Roofline } from "../data";
import { labelHeight, placeLabels } from "./drawing";
import { attainable, bandwidthRoof, ceilings, chooseRoof, distance, extents, levelOf, memoryRoof, ridge, sourceText } from "./roofs";

const roofline: Roofline = {
  device: "NVIDIA H200", why: null,
  roofs: [
    { name: "float32", flops_per_s: 60e12, bytes_per_s: null, source: "measured" },
    { name: "bfloat16", flops_per_s: 800e12, bytes_per_s: null, source: "measured" },
    { name: "memory bandwidth", flops_per_s: null, bytes_per_s: 4e12, source: "measured" },
    { name: "L2 bandwidth", flops_per_s: null, bytes_per_s: 10e12, source: "measured" },
  ],
  points: [
    { kind: "stage", name: "decode", stage: "decode", intensity: 1, flops_per_s: 3e12, time_ns: 9e6, source: "analytic" },
    { kind: "kernel", name: "gemm", stage: "prefill", intensity: 1000, flops_per_s: 400e12, time_ns: 5e6, source: "shapes" },
  ],
};

describe("roofs", () => {
  const memory = memoryRoof(roofline)!, bfloat16 = chooseRoof(roofline, "bfloat16")!;
  it("memory is the slowest bandwidth", () => expect(memory.name).toBe("memory bandwidth"));
  it("the roof in use is the wanted one, or the lowest that holds all points", () => {
    expect(chooseRoof(roofline, "float32")!.name).toBe("float32");
    expect(chooseRoof(roofline, null)!.name).toBe("bfloat16");  // 400 TFLOP/s is above float32
    expect(chooseRoof({ ...roofline, roofs: [] }, null)).toBeNull();
  });
  it("is the lower of compute and memory", () => {
    expect(ridge(bfloat16, memory)).toBe(200);
    expect(attainable(1, bfloat16, memory)).toBe(4e12);
    expect(attainable(1000, bfloat16, memory)).toBe(800e12);
  });
  it("types that reach as much share a line", () => {
    const twin = { name: "float16", flops_per_s: 790e12, bytes_per_s: null, source: "measured" };
    const lines = ceilings({ ...roofline, roofs: [...roofline.roofs, twin] });
    expect(lines.map(({ roofs }) => roofs.map((roof) => roof.name))).toEqual([["float32"], ["bfloat16", "float16"]]);
  });
  it("says the distance", () => {
    expect(distance(roofline.points[0]!, bfloat16, memory)).toBe("75 % of what memory bandwidth allows there (4 TFLOP/s)");
    expect(distance(roofline.points[1]!, bfloat16, memory)).toBe("50 % of what bfloat16 allows there (800 TFLOP/s)");
    expect(distance(roofline.points[1]!, null, null)).toBe("no roof is known");
  });
  it("a counted point is held against the bandwidth of its level", () => {
    const counted = (level: "dram" | "l2" | "l1") => ({ ...roofline.points[0]!, source: "counters", level });
    expect(bandwidthRoof(roofline, counted("dram"))).toBe(memory);
    expect(bandwidthRoof(roofline, counted("l2"))!.name).toBe("L2 bandwidth");
    expect(bandwidthRoof(roofline, counted("l1"))).toBeNull();
    expect(bandwidthRoof({ ...roofline, roofs: roofline.roofs.slice(0, 3) }, counted("l2"))).toBeNull();
    expect(levelOf(roofline.points[0]!)).toBeNull();
    expect(levelOf({ ...roofline.points[0]!, source: "counters" })).toBe("dram");  // of pages that do not say it
    // 3 TFLOP/s at 1 FLOP/B under 10 TB/s
    expect(distance(counted("l2"), bfloat16, bandwidthRoof(roofline, counted("l2")))).toBe("30 % of what L2 bandwidth allows there (10 TFLOP/s)");
    expect(sourceText(counted("l2"))).toBe("counted, bytes of L2");
    expect(sourceText(roofline.points[0]!)).toBe("analytic");
  });
  it("axes hold every point and ridge", () => {
    const { x, y } = extents(roofline);
    expect(x[0] < 1 && x[1] > 1000 && y[0] < 3e12 && y[1] > 800e12).toBe(true);
    expect(extents({ ...roofline, roofs: [], points: [] })).toEqual({ x: [1 / 3, 40], y: [1 / 3, 20] });
  });
});

describe("labels", () => {
  const area = { x: 0, y: 0, width: 400, height: 200 };
  it("stand beside the point, on a side with room", () => {
    const [right, left] = placeLabels([{ x: 50, y: 100, radius: 5, text: "abc" }, { x: 395, y: 50, radius: 5, text: "abc" }], area, 9);
    expect(right!.x).toBeGreaterThan(50);
    expect(left!.x + left!.width).toBeLessThan(395);
  });
  it("never overlap, and the heaviest come first", () => {
    const anchors = Array.from({ length: 60 }, (_, index) => (
      { x: 100 + (index % 8) * 6, y: 60 + Math.floor(index / 8) * 5, radius: 4, text: `label ${index}` }));
    const placed = placeLabels(anchors, area, 20);
    expect(placed.length).toBeGreaterThan(1);
    for (const [at, one] of placed.entries()) for (const other of placed.slice(at + 1)) {
      const apart = one.x + one.width <= other.x || other.x + other.width <= one.x || Math.abs(one.y - other.y) >= labelHeight;
      expect(apart).toBe(true);
    }
    expect(placeLabels(anchors, area, 1)).toHaveLength(1);
    expect(placeLabels([{ x: 200, y: 100, radius: 3, text: "x".repeat(200) }], area, 5)).toEqual([]);
  });
});
