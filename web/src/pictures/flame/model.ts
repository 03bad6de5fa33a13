// A tree of call paths: totals, places, and the way from node to node.
import { type Flame, type FlameDiff, flameWeights } from "../../data";
import { change, inUnit, visible } from "../../text";
import type { Pattern, Theme } from "../canvas";
import { stageCategory } from "../drawing";
import { classOf } from "../timeline/gaps";
import type { Change } from "./draw";
import { hasLayers, ofStage, stagesOf, unfolded, type Weighted } from "./shape";

export interface Columns {
  names: string[]; short_names?: (string | null)[]; classes?: (string | null)[]; parent: number[]; name: number[]; kind: number[];
}
export interface Tree {
  parent: Int32Array; children: number[][]; depth: Int32Array; names: string[]; shortNames: string[]; kinds: string[];
  classes: number[];  // of kernels: timeline/gaps.ts; -1 of other frames
}

// Node 0 is the root. Where the data have several, they get one above them; `shift` is then 1.
export interface Rooted { tree: Tree; shift: 0 | 1 }

export function treeOf(columns: Columns, shown: (text: string) => string): Rooted {
  const roots = columns.parent.filter((parent) => parent < 0).length;
  const shift = roots === 1 && columns.parent[0]! < 0 ? 0 : 1;
  const count = columns.parent.length + shift;
  const label = columns.names.map(shown);
  const tree: Tree = {
    parent: new Int32Array(count).fill(-1), children: Array.from({ length: count }, () => []), depth: new Int32Array(count),
    names: new Array<string>(count).fill("all"), shortNames: new Array<string>(count).fill(""), kinds: new Array<string>(count).fill("root"),
    classes: new Array<number>(count).fill(-1),
  };
  for (let from = 0; from < columns.parent.length; ++from) {
    const node = from + shift, parent = columns.parent[from]! + shift;
    tree.names[node] = label[columns.name[from]!] ?? "";
    tree.shortNames[node] = shown(columns.short_names?.[columns.name[from]!] ?? "");
    tree.kinds[node] = label[columns.kind[from]!] ?? "";
    if (tree.kinds[node] === "kernel") tree.classes[node] = classOf(columns.classes?.[columns.name[from]!]);
    if (parent < 0 || parent >= node) continue;  // parents come first
    tree.parent[node] = parent;
    tree.children[parent]!.push(node);
    tree.depth[node] = tree.depth[parent]! + 1;
  }
  return { tree, shift };
}

// Weights by node: own, and with everything inside.
export interface Weights { self: Float64Array; total: Float64Array }

export function weigh({ tree, shift }: Rooted, own: number[]): Weights {
  const self = new Float64Array(tree.parent.length);
  own.forEach((value, index) => { self[index + shift] = value; });
  const total = Float64Array.from(self);
  for (let node = total.length - 1; node > 0; --node) {
    const parent = tree.parent[node]!;
    if (parent >= 0) total[parent]! += total[node]!;
  }
  return { self, total };
}

export interface Box { node: number; x: number; width: number; depth: number }

// The zoomed node over the full width under its ancestors, its inside below it, heaviest first. What is narrower than
// `least` pixels is left out with all inside it.
export function layout(tree: Tree, total: Float64Array, zoomed: number, width: number, least: number): Box[] {
  const boxes: Box[] = ancestors(tree, zoomed).map((node) => ({ node, x: 0, width, depth: tree.depth[node]! }));
  const perWeight = total[zoomed]! > 0 ? width / total[zoomed]! : 0;
  const open: Box[] = [{ node: zoomed, x: 0, width, depth: tree.depth[zoomed]! }];
  for (let box = open.pop(); box; box = open.pop()) {
    boxes.push(box);
    let x = box.x;
    for (const child of heaviestFirst(tree, total, box.node)) {
      const wide = total[child]! * perWeight;
      if (wide < least) break;
      open.push({ node: child, x, width: wide, depth: box.depth + 1 });
      x += wide;
    }
  }
  return boxes;
}

export function heaviestFirst(tree: Tree, total: Float64Array, node: number): number[] {
  const rank = (child: number) => (tree.kinds[child] === "layer" ? 0 : 1);  // layers stay in their order
  return [...tree.children[node]!].sort((a, b) => rank(a) - rank(b) || (rank(a) === 0 ? a - b : total[b]! - total[a]! || a - b));
}

// Outermost first, without the node itself.
export function ancestors(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let at = tree.parent[node]!; at >= 0; at = tree.parent[at]!) path.unshift(at);
  return path;
}

export const boxAt = (boxes: Box[], x: number, depth: number): Box | null =>
  boxes.find((box) => box.depth === depth && x >= box.x && x < box.x + box.width) ?? null;

export type Step = "parent" | "child" | "next" | "previous";

// Among nodes that have weight, in the order in which they are drawn.
export function walk(tree: Tree, total: Float64Array, node: number, step: Step): number {
  if (step === "parent") return Math.max(0, tree.parent[node]!);
  const family = heaviestFirst(tree, total, step === "child" ? node : Math.max(0, tree.parent[node]!)).filter((each) => total[each]! > 0);
  if (step === "child") return family[0] ?? node;
  return family[family.indexOf(node) + (step === "next" ? 1 : -1)] ?? node;
}

export interface Match { nodes: Set<number>; weight: number }

// Nodes whose name contains the text, in any case. A match inside a match is not counted twice.
export function search(tree: Tree, total: Float64Array, query: string): Match {
  const wanted = query.trim().toLowerCase();
  const match: Match = { nodes: new Set(), weight: 0 };
  if (wanted === "") return match;
  const inside = new Uint8Array(tree.parent.length);
  for (let node = 0; node < tree.parent.length; ++node) {
    const parent = tree.parent[node]!;
    const found = tree.names[node]!.toLowerCase().includes(wanted);
    if (found) match.nodes.add(node);
    if (found && !(parent >= 0 && inside[parent] === 1)) match.weight += total[node]!;
    inside[node] = found || (parent >= 0 && inside[parent] === 1) ? 1 : 0;
  }
  return match;
}

export interface ByName { name: string; kind: string; self: number; total: number; nodes: number }

// Added up over all places where a name stands; in recursion the total counts once.
export function byName(tree: Tree, { self, total }: Weights, within: number): ByName[] {
  const rows = new Map<string, ByName>();
  const visit = (node: number, open: Set<string>) => {
    const key = `${tree.kinds[node]} ${tree.names[node]}`;
    const row = rows.get(key) ?? { name: tree.names[node]!, kind: tree.kinds[node]!, self: 0, total: 0, nodes: 0 };
    rows.set(key, row);
    row.self += self[node]!;
    row.nodes += 1;
    const first = !open.has(key);
    if (first) { row.total += total[node]!; open.add(key); }
    for (const child of tree.children[node]!) visit(child, open);
    if (first) open.delete(key);
  };
  visit(within, new Set());
  return [...rows.values()];
}

// What two trees laid over each other say about a node.
export function relativeChange(before: number, after: number): number {
  if (before === after) return 0;
  return before === 0 ? Infinity : after / before - 1;
}

// "12 ms → 14 ms: +2 ms (+17 %)"
export function changeText(before: number, after: number, unit: string): string {
  const by = after - before;
  return `${inUnit(before, unit)} → ${inUnit(after, unit)}: ${by > 0 ? "+" : ""}${inUnit(by, unit)} (${change(before, after)})`;
}

// Changes at which the colour is strongest: the largest of a node that matters, between 5 % and 50 %.
export function fullChange(tree: Tree, before: Float64Array, after: Float64Array): number {
  const matters = 0.01 * Math.max(before[0] ?? 0, after[0] ?? 0);
  let most = 0.05;
  for (let node = 0; node < tree.parent.length; ++node) {
    if (Math.max(before[node]!, after[node]!) < matters) continue;
    most = Math.max(most, Math.min(0.5, Math.abs(relativeChange(before[node]!, after[node]!))));
  }
  return most;
}

// A flame graph of one run, or of two laid over each other, behind one face.
export type Side = "after" | "before";
export interface FlameModel {
  tree: Tree; differential: boolean; usable: number[];  // weights that are not all zero
  weights(weight: number, side: Side): Weights;
  change(weight: number): Change | null;
}
// What is shown of it.
export interface Shape { stage: string; layers: boolean; wrappers: boolean }  // stage "": all
export interface Choices { stages: string[]; layers: boolean; wrappers: number }

export const weightNames = ["GPU time", "CPU time", "bytes"];
export const weightUnits = flameWeights.map((weight) => (weight === "bytes" ? "bytes" : "ns"));

const usableOf = (sides: Weights[][]): number[] => [0, 1, 2].filter((weight) => sides.some((side) => side[weight]!.total[0]! > 0));
const weighAll = (rooted: Rooted, self: number[][]): Weights[] => self.map((own) => weigh(rooted, own));

export function choicesOf(flame: Flame | FlameDiff): Choices {
  if (!("self" in flame)) return { stages: stagesOf(flame), layers: false, wrappers: 0 };
  return { stages: stagesOf(flame), layers: hasLayers(flame.layers), wrappers: flame.with_wrappers ? flame.wrappers ?? 0 : 0 };
}

export function modelOf(flame: Flame, shape: Shape = { stage: "", layers: false, wrappers: false }): FlameModel {
  const frames = (shape.wrappers && flame.with_wrappers) || flame;
  let columns: Weighted = frames;
  if (shape.layers && frames.layers) columns = unfolded(columns, frames.layers);
  if (shape.stage !== "") columns = ofStage(columns, shape.stage);
  const rooted = treeOf(columns, visible);
  const weights = weighAll(rooted, columns.self);
  return {
    tree: rooted.tree, differential: false, usable: usableOf([weights]), weights: (weight) => weights[weight]!, change: () => null,
  };
}

export function diffModelOf(diff: FlameDiff, stage = ""): FlameModel {
  const both: Weighted = { ...diff, self: [...diff.before, ...diff.after] };
  const columns = stage === "" ? both : ofStage(both, stage);
  const rooted = treeOf(columns, visible), { tree } = rooted;
  const sides = { before: weighAll(rooted, columns.self.slice(0, 3)), after: weighAll(rooted, columns.self.slice(3)) };
  return {
    tree, differential: true, usable: usableOf([sides.before, sides.after]), weights: (weight, side) => sides[side][weight]!,
    change: (weight) => {
      const [before, after] = [sides.before[weight]!.total, sides.after[weight]!.total];
      return { before, after, full: fullChange(tree, before, after) };
    },
  };
}

// Weight in call paths of which frames are left out.
export const tooSmall = (tree: Tree, total: Float64Array): number => tree.kinds.reduce(
  (sum, kind, node) => sum + (kind === "other" && tree.kinds[tree.parent[node]!] !== "other" ? total[node]! : 0), 0);

// The node under the same names in another tree, or the innermost that is there.
export const pathOf = (tree: Tree, node: number): string[] => [...ancestors(tree, node), node].slice(1).map((each) => tree.names[each]!);
export function nodeAtPath(tree: Tree, path: string[]): number {
  let at = 0;
  for (const name of path) at = tree.children[at]!.find((child) => tree.names[child] === name) ?? at;
  return at;
}

// How the kinds of frames look: colour and pattern, so that neither is needed alone. Stages have the colours that they
// have everywhere, kernels those of their classes.
export interface Look { colour: string; pattern: Pattern; name: string }  // colour: a key of the theme's kinds; "" nothing special

const looks: Record<string, Look> = {
  root: { colour: "", pattern: "plain", name: "all" },
  stage: { colour: "", pattern: "plain", name: "stage" },
  python: { colour: "python", pattern: "plain", name: "Python function" },
  native: { colour: "native", pattern: "hatched", name: "native function" },
  range: { colour: "range", pattern: "dotted", name: "range" },
  module: { colour: "module", pattern: "plain", name: "module" },
  layer: { colour: "range", pattern: "plain", name: "layer" },
  kernel: { colour: "", pattern: "underlined", name: "kernel" },
  copy: { colour: "copy", pattern: "underlined", name: "copy" },
  other: { colour: "other", pattern: "crossed", name: "frames too small to draw" },
};

export const lookOf = (kind: string): Look => looks[kind] ?? { colour: "other", pattern: "plain", name: kind };

// For the legend: stages stand under their names, in colours of their own; kernels by class.
export const kindNames = (kinds: Iterable<string>): string[] => {
  const order = Object.keys(looks);
  return [...new Set(kinds)].filter((kind) => !["root", "stage", "kernel"].includes(kind)).sort((a, b) => order.indexOf(a) - order.indexOf(b));
};

export const outsideStages = "outside stages";

export function fillOf(kind: string, name: string, kernelClass: number, theme: Theme): string {
  if (kind === "stage" && name !== outsideStages) return theme.categories[stageCategory(name)]!;
  if (kind === "kernel") return theme.classes[Math.max(0, kernelClass)]!;
  return theme.kinds[lookOf(kind).colour] ?? theme.idle;
}
