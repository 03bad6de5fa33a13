//  all(1) ── decode(0) ─┬─ mlp(2) ── gemm(30)
//                       └─ attention(3) ─┬─ gemm(40)
//                                        └─ mlp(4) ── mlp(20)      a name inside itself
import { describe, expect, it } from "vitest";
import type { Flame } from "../../data";
import {
  ancestors, boxAt, byName, changeText, choicesOf, fullChange, kindNames, layout, lookOf, modelOf, nodeAtPath, pathOf, relativeChange, search,
  tooSmall, treeOf, walk, weigh,
} from "./model";
import { sandwich } from "./shape";

const names = ["all", "decode", "mlp", "gemm", "attention", "stage", "module", "kernel"];
const columns = {
  names, parent: [-1, 0, 1, 2, 1, 4, 4, 6], name: [0, 1, 2, 3, 4, 3, 2, 2], kind: [0, 5, 6, 7, 6, 7, 6, 6],
};
const own = [1, 0, 2, 30, 3, 40, 4, 20];
const rooted = treeOf(columns, (text) => text);
const weights = weigh(rooted, own);
const { tree } = rooted;

describe("flame tree", () => {
  it("totals are the sums of what is inside", () => {
    expect([...weights.total]).toEqual([100, 99, 32, 30, 67, 40, 24, 20]);
    expect([...weights.self]).toEqual(own);
    for (let node = 0; node < own.length; ++node) {
      const inside = tree.children[node]!.reduce((sum, child) => sum + weights.total[child]!, 0);
      expect(weights.total[node]).toBe(own[node]! + inside);
    }
  });
  it("several roots get one above them", () => {
    const two = treeOf({ names: ["a", "b"], parent: [-1, -1, 0], name: [0, 1, 1], kind: [0, 0, 0] }, (text) => text);
    expect(two.shift).toBe(1);
    expect([...weigh(two, [1, 2, 4]).total]).toEqual([7, 5, 2, 4]);
    expect(two.tree.names).toEqual(["all", "a", "b", "b"]);
    expect([...treeOf({ names: [], parent: [], name: [], kind: [] }, (text) => text).tree.names]).toEqual(["all"]);
  });
  it("boxes lie inside their parents, heaviest first, with widths by weight", () => {
    const boxes = layout(tree, weights.total, 0, 1000, 0.5);
    const of = (node: number) => boxes.find((box) => box.node === node)!;
    expect(boxes).toHaveLength(8);
    expect(of(4)).toEqual({ node: 4, x: 0, width: 670, depth: 2 });
    expect(of(2)).toEqual({ node: 2, x: 670, width: 320, depth: 2 });
    for (const box of boxes.slice(1)) {
      const parent = of(tree.parent[box.node]!);
      expect(box.x).toBeGreaterThanOrEqual(parent.x);
      expect(box.x + box.width).toBeLessThanOrEqual(parent.x + parent.width + 1e-9);
    }
  });
  it("zoom fills the width, under the ancestors; thin ones are left out", () => {
    const boxes = layout(tree, weights.total, 4, 670, 0.5);
    expect(boxes.map((box) => box.node).sort()).toEqual([0, 1, 4, 5, 6, 7]);
    expect(boxes.filter((box) => box.depth < 3).every((box) => box.width === 670 && box.x === 0)).toBe(true);
    expect(layout(tree, weights.total, 0, 100, 25).map((box) => box.node).sort()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(boxAt(boxes, 401, 3)?.node).toBe(6);
    expect(boxAt(boxes, 399, 3)?.node).toBe(5);
    expect(boxAt(boxes, 665, 3)).toBeNull();
  });
  it("arrows walk to parent, heaviest child and siblings", () => {
    expect(walk(tree, weights.total, 1, "child")).toBe(4);
    expect(walk(tree, weights.total, 4, "next")).toBe(2);
    expect(walk(tree, weights.total, 2, "next")).toBe(2);
    expect(walk(tree, weights.total, 2, "previous")).toBe(4);
    expect(walk(tree, weights.total, 3, "child")).toBe(3);
    expect(walk(tree, weights.total, 0, "parent")).toBe(0);
    expect(ancestors(tree, 5)).toEqual([0, 1, 4]);
  });
  it("search counts a match inside a match once", () => {
    expect(search(tree, weights.total, "MLP")).toEqual({ nodes: new Set([2, 6, 7]), weight: 32 + 24 });
    expect(search(tree, weights.total, "gemm").weight).toBe(70);
    expect(search(tree, weights.total, " ").nodes.size).toBe(0);
  });
  it("by name: self adds up to the total, recursion counts once", () => {
    const rows = byName(tree, weights, 0);
    expect(rows.reduce((sum, row) => sum + row.self, 0)).toBe(100);
    expect(rows.find((row) => row.name === "mlp")).toEqual({ name: "mlp", kind: "module", self: 26, total: 56, nodes: 3 });
    expect(rows.find((row) => row.name === "gemm")!.total).toBe(70);
  });
});

// all ─┬─ prefill ── layers.* ── mlp ── gemm(30)              of it layer 0: 10, layer 10: 12, layer 2: 8
//      └─ decode ─┬─ layers.*(3) ── gemm(40)                 layer 0: 20, layer 2: 15; 5 are not known by layer
//                 └─ frames too small to draw(2) ── gemm(5)
const flame: Flame = {
  names: ["all", "prefill", "decode", "layers.*", "mlp", "gemm", "frames too small to draw", "root", "stage", "module", "kernel", "other"],
  parent: [-1, 0, 1, 2, 3, 0, 5, 6, 5, 8], name: [0, 1, 3, 4, 5, 2, 3, 5, 6, 5], kind: [7, 8, 9, 9, 10, 8, 9, 10, 11, 10],
  self: [[0, 0, 0, 0, 30, 0, 3, 40, 2, 5], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 7, 0, 0]],
  total: [80, 0, 7], merged: [7, 0, 0], why: null,
  layers: { node: [4, 4, 4, 7, 7], layer: [10, 0, 2, 2, 0], self: [[12, 10, 8, 15, 20], [0, 0, 0, 0, 0], [0, 0, 0, 7, 0]] },
  wrappers: 3,
};
const folded = { stage: "", layers: false, wrappers: false };
const totalOf = (model: ReturnType<typeof modelOf>, path: string[], weight = 0) => {
  const node = nodeAtPath(model.tree, path);
  expect(pathOf(model.tree, node)).toEqual(path);
  return model.weights(weight, "after").total[node];
};

describe("what is shown of a flame graph", () => {
  it("layers are folded, and unfolding keeps every sum", () => {
    expect(choicesOf(flame)).toEqual({ stages: ["prefill", "decode"], layers: true, wrappers: 0 });
    const before = modelOf(flame), after = modelOf(flame, { ...folded, layers: true });
    expect(before.tree.names).not.toContain("layers.0");
    for (const weight of [0, 2]) {
      for (const path of [[], ["prefill"], ["decode"], ["decode", "layers.*"], ["prefill", "layers.*"]])
        expect(totalOf(after, path, weight)).toBe(totalOf(before, path, weight));
    }
    expect(totalOf(after, ["prefill", "layers.*", "layers.10", "mlp", "gemm"])).toBe(12);
    expect(totalOf(after, ["decode", "layers.*", "layers.2"])).toBe(15);
    expect(totalOf(after, ["decode", "layers.*", "gemm"])).toBe(5);  // not known by layer
    expect(totalOf(after, ["decode", "layers.*", "layers.2"], 2)).toBe(7);
    expect(nodeAtPath(after.tree, ["prefill", "layers.*", "mlp"])).toBe(nodeAtPath(after.tree, ["prefill", "layers.*"]));
  });
  it("layers are drawn in their order, not by weight", () => {
    const { tree, weights } = modelOf(flame, { ...folded, layers: true });
    const boxes = layout(tree, weights(0, "after").total, 0, 1000, 0.1).filter((box) => tree.kinds[box.node] === "layer" && box.depth === 3);
    const inPrefill = boxes.filter((box) => ancestors(tree, box.node).some((node) => tree.names[node] === "prefill")).sort((a, b) => a.x - b.x);
    expect(inPrefill.map((box) => tree.names[box.node])).toEqual(["layers.0", "layers.2", "layers.10"]);
  });
  it("a stage is that stage's weight, and stages add up", () => {
    const of = (stage: string) => modelOf(flame, { ...folded, stage }).weights(0, "after").total[0]!;
    expect([of("prefill"), of("decode")]).toEqual([30, 50]);
    expect(of("prefill") + of("decode")).toBe(modelOf(flame).weights(0, "after").total[0]);
    expect(modelOf(flame, { ...folded, stage: "decode" }).tree.names).not.toContain("prefill");
  });
  it("wrappers are shown on request", () => {
    const all: Flame = { ...flame, names: [...flame.names, "_call_impl"], name: [0, 1, 3, 12, 5, 2, 3, 5, 6, 5] };
    const both = { ...flame, with_wrappers: all };
    expect(choicesOf(both).wrappers).toBe(3);
    expect(modelOf(both).tree.names).not.toContain("_call_impl");
    expect(modelOf(both, { ...folded, wrappers: true }).tree.names).toContain("_call_impl");
  });
  it("what is too small to draw is told, with its kernels", () => {
    const { tree, weights: of } = modelOf(flame);
    expect(tooSmall(tree, of(0, "after").total)).toBe(7);
  });
});

describe("callers and callees", () => {
  it("both weigh what the function takes in all places", () => {
    const model = modelOf(flame), { tree: all } = model, of = model.weights(0, "after");
    const { callers, callees, places } = sandwich(all, of, all.names.indexOf("gemm"));
    expect(places).toBe(3);
    expect([callers.weights.total[0], callees.weights.total[0]]).toEqual([75, 75]);
    expect(callers.weights.self.reduce((sum, value) => sum + value, 0)).toBe(75);
    const named = (grown: typeof callers, path: string[]) => grown.weights.total[nodeAtPath(grown.tree, path)];
    expect(named(callers, ["mlp", "layers.*", "prefill"])).toBe(30);
    expect(named(callers, ["layers.*"])).toBe(40);
    expect(callers.tree.names).not.toContain("all");
  });
  it("merges places, and recursion counts once", () => {
    const { callers, callees } = sandwich(tree, weights, 2);  // mlp: 32 at one place, 24 (with an mlp inside) at the other
    expect(callees.weights.total[0]).toBe(32 + 24);
    expect(callers.weights.total[0]).toBe(32 + 24);
    expect(callees.weights.self[0]).toBe(2 + 4);
    expect(callees.weights.total[nodeAtPath(callees.tree, ["gemm"])]).toBe(30);
    expect(callees.weights.total[nodeAtPath(callees.tree, ["mlp"])]).toBe(20);
    expect(callers.weights.total[nodeAtPath(callers.tree, ["attention", "decode"])]).toBe(24);
  });
});

describe("change", () => {
  it("relative and in words", () => {
    const changes = [relativeChange(100, 105), relativeChange(0, 5), relativeChange(5, 0), relativeChange(0, 0)];
    expect(changes.map((value) => Math.round(value * 100) / 100))
      .toEqual([0.05, Infinity, -1, 0]);
    expect(changeText(12e6, 14e6, "ns")).toBe("12 ms → 14 ms: +2 ms (+16.7 %)");
    expect(changeText(0, 3000, "ns")).toBe("0 ns → 3 µs: +3 µs (new)");
    expect(changeText(2000, 1000, "bytes")).toBe("2 kB → 1 kB: -1 kB (-50 %)");
  });
  it("the scale reaches the largest change that matters", () => {
    const flat = weights.total, slower = Float64Array.from(flat, (value, node) => (node === 3 ? value * 1.2 : value));
    expect(fullChange(tree, flat, flat)).toBe(0.05);
    expect(fullChange(tree, flat, slower)).toBeCloseTo(0.2);
    expect(fullChange(tree, flat, Float64Array.from(flat, (value) => value * 9))).toBe(0.5);
  });
});

it("kinds differ in colour or pattern", () => {
  const kinds = ["python", "native", "range", "module", "kernel", "copy", "other"];
  const looks = kinds.map((kind) => lookOf(kind));
  expect(new Set(looks.map((look) => `${look.colour} ${look.pattern}`)).size).toBe(kinds.length);
  expect(kindNames(["kernel", "root", "native", "python", "kernel"])).toEqual(["python", "native"]);
});
