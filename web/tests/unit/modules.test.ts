import { describe, expect, it } from "vitest";
import type { Report } from "../../src/data";
import { allPaths, type ModuleNode, moduleTree, openAtFirst, seen, size, sortedTree } from "../../src/sections/module_tree";
import { move } from "../../src/sections/modules";

const row = (name: string, time_ns: number, more = {}) => ({ name, stage: "decode", time_ns, calls: 2, mfu: 0.5, mbu: null, bytes: 10, ...more });
const report: Report = {
  devices: [{ kind: "gpu" }],
  stages: [{ name: "decode", kernel_ns: 200, steps_ns: 999 }],
  modules: [row("layers.0", 60), row("layers.0.mlp", 40), row("layers.10", 50), row("layers.2", 50), row("lm_head", 30),
            row("lm_head", 7, { stage: "prefill" }), null],
  device_memory: { devices: [{ allocations: { at_peak: [{ ranges: "load › layers.0 › layers.0.mlp", bytes: 5 }, { ranges: "layers.0", bytes: 2 }] } }] },
};
const paths = (nodes: ModuleNode[]) => nodes.map((node) => node.path);
const tree = () => moduleTree(report, "decode");

describe("the tree of modules", () => {
  it("puts modules into the ones they belong to, most time first", () => {
    expect(paths(tree())).toEqual(["layers", "lm_head"]);
    expect(paths(tree()[0]!.children)).toEqual(["layers.0", "layers.2", "layers.10"]);
    expect(size(tree())).toBe(6);
  });
  it("adds up what nobody measured, and only that", () => {
    const layers = tree()[0]!;
    expect(layers.row["time_ns"]).toBe(160);        // 60 + 50 + 50, not the 40 inside layers.0 again
    expect(layers.row["share"]).toBe(160 / 200);   // on a GPU of the stage's kernels
    expect([layers.row["bytes"], layers.row["mfu"], layers.recorded]).toEqual([30, undefined, false]);
    expect(layers.children[0]!.row).toMatchObject({ time_ns: 60, share: 60 / 200, mfu: 0.5, calls: 2 });
  });
  it("tells what modules hold at the peak, with those inside", () => {
    const layers = tree()[0]!;
    const held = [layers, layers.children[0]!, layers.children[0]!.children[0]!].map(({ row }) => row["held_bytes"]);
    expect(held).toEqual([7, 7, 5]);
  });
  it("sorts brothers by any column, numbers in names as numbers", () => {
    expect(paths(sortedTree(tree(), "label", false)[0]!.children)).toEqual(["layers.0", "layers.2", "layers.10"]);
    expect(paths(sortedTree(tree(), "time_ns", false))).toEqual(["lm_head", "layers"]);
  });
  it("shows what is open, or what is searched for with what it stands in", () => {
    expect(paths(seen(tree(), openAtFirst(tree()), ""))).toEqual(["layers", "layers.0", "layers.2", "layers.10", "lm_head"]);
    expect(paths(seen(tree(), new Set(), "MLP"))).toEqual(["layers", "layers.0", "layers.0.mlp"]);
    expect(allPaths(tree())).toEqual(["layers", "layers.0"]);
  });
  it("survives a report without anything", () => expect(moduleTree({}, "decode")).toEqual([]));
});

describe("keys in the tree", () => {
  const open = new Set(["layers"]);
  const rows = seen(tree(), open, "");
  const at = (key: string, index: number) => move(key, rows, index, rows[index]!, open);
  it("walk, open, close, go in and out", () => {
    expect(at("ArrowDown", 0)?.to?.path).toBe("layers.0");
    expect(at("ArrowRight", 0)?.to?.path).toBe("layers.0");  // open: goes in
    expect(at("ArrowRight", 1)).toEqual({ toggle: true });
    expect(at("ArrowLeft", 0)).toEqual({ toggle: false });
    expect(at("ArrowLeft", 2)?.to?.path).toBe("layers");
    expect(at("End", 0)?.to?.path).toBe("lm_head");
    expect(at("x", 0)).toBeNull();
  });
});
