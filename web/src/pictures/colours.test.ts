import { describe, expect, it } from "vitest";
import {
  assignStages, contrast, cssColour, type Diverging, divergingColour, hash, mix, nameCategory, parseColour, stageCategory, textOn,
} from "./drawing";

const scale: Diverging = { less: [0, 0, 200], none: [200, 200, 200], more: [200, 100, 0] };

describe("colours", () => {
  it("of stages that no run had before differ within a run", () => {
    const stages = ["forward", "validation", "generation", "training", "backward"];
    assignStages(stages);
    expect(new Set(stages.map(stageCategory)).size).toBe(stages.length);
    expect(stageCategory("forward")).toBe(3);  // known ones keep theirs
  });
  it("of stages differ, of names are stable", () => {
    const stages = ["prefill", "decode", "mixed", "forward", "backward", "optimizer", "load", "warm-up"];
    expect(new Set(stages.map(stageCategory)).size).toBe(stages.length);
    expect(nameCategory("gemm")).toBe(nameCategory("gemm"));
    expect(hash("")).toBe(0x811c9dc5);        // the offset basis of FNV-1a
    expect(hash("a")).toBe(0xe40c292c);       // its published test value
  });
  it("parse and print", () => {
    expect(parseColour("#0f8")).toEqual([0, 255, 136]);
    expect(cssColour(parseColour("#1a2b3c"))).toBe("#1a2b3c");
    expect(parseColour("nonsense")).toEqual([128, 128, 128]);
    expect(mix([0, 0, 0], [100, 200, 50], 0.5)).toEqual([50, 100, 25]);
  });
  it("diverge on both sides of no change and stop at the full change", () => {
    expect(divergingColour(scale, 0, 0.5)).toEqual(scale.none);
    expect(divergingColour(scale, 0.5, 0.5)).toEqual(scale.more);
    expect(divergingColour(scale, 9, 0.5)).toEqual(scale.more);
    expect(divergingColour(scale, -0.25, 0.5)).toEqual(mix(scale.none, scale.less, 0.5));
    expect(divergingColour(scale, Infinity, 0.5)).toEqual(scale.more);
  });
  it("text is readable", () => {
    expect(contrast([0, 0, 0], [255, 255, 255])).toBeCloseTo(21);
    expect(textOn([240, 228, 66])).toBe("#000000");
    expect(textOn([0, 60, 120])).toBe("#ffffff");
  });
});
