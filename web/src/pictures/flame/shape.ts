// What a flame graph is made of before it is drawn: one stage of it, its layers apart, the callers and callees of one
// function. No weight is lost or counted twice by any of these: flame.test.ts.
import type { FlameLayers } from "../../data";
import type { Columns, Tree, Weights } from "./model";

// Columns with any number of weights, parents before children.
export interface Weighted extends Columns { self: number[][] }

const emptyLike = ({ names, short_names, classes, self }: Weighted): Weighted => (
  { names: [...names], short_names: [...(short_names ?? [])], classes: [...(classes ?? [])],
    parent: [], name: [], kind: [], self: self.map(() => []) });

function push(to: Weighted, parent: number, name: number, kind: number, self: (weight: number) => number): number {
  to.parent.push(parent);
  to.name.push(name);
  to.kind.push(kind);
  to.self.forEach((column, weight) => column.push(self(weight)));
  return to.parent.length - 1;
}

function numberOf(columns: Weighted, text: string): number {
  const known = columns.names.indexOf(text);
  if (known >= 0) return known;
  columns.short_names?.push(null);
  columns.classes?.push(null);
  return columns.names.push(text) - 1;
}

const kindOf = (columns: Columns, node: number): string => columns.names[columns.kind[node]!] ?? "";
const nameOf = (columns: Columns, node: number): string => columns.names[columns.name[node]!] ?? "";

export const stagesOf = (columns: Columns): string[] =>
  columns.parent.map((_, node) => node).filter((node) => kindOf(columns, node) === "stage").map((node) => nameOf(columns, node));

// Only what is inside that stage, under the same root.
export function ofStage(columns: Weighted, stage: string): Weighted {
  const out = emptyLike(columns), place = new Map<number, number>();
  columns.parent.forEach((parent, node) => {
    const around = place.get(parent);
    const wanted = parent < 0 || (around !== undefined && (columns.parent[parent]! >= 0 || nameOf(columns, node) === stage));
    if (wanted) {
      const own = (weight: number) => (parent < 0 ? 0 : columns.self[weight]![node]!);
      place.set(node, push(out, around ?? -1, columns.name[node]!, columns.kind[node]!, own));
    }
  });
  return out;
}

const isFolded = (columns: Columns, node: number): boolean => kindOf(columns, node) === "module" && nameOf(columns, node).endsWith(".*");

// By node: the outermost "layers.*" around it; -1 none.
function starOf(columns: Columns): number[] {
  const star: number[] = [];
  columns.parent.forEach((parent, node) => {
    const around = parent < 0 ? -1 : star[parent]!;
    star.push(around >= 0 ? around : isFolded(columns, node) ? node : -1);
  });
  return star;
}

export const hasLayers = (layers: FlameLayers | undefined): boolean => new Set(layers?.layer).size > 1;

// Inside every "layers.*" a node for each layer, in order, with its part of all below. What is not known by layer stays
// where it was.
export function unfolded(columns: Weighted, layers: FlameLayers): Weighted {
  const out = emptyLike(columns), star = starOf(columns), place: number[] = [];
  const rest = columns.self.map((column) => [...column]);
  const byNode = new Map<number, Map<number, number>>();  // node, layer -> entry
  layers.node.forEach((node, entry) => {
    if (star[node]! < 0) return;
    byNode.set(node, (byNode.get(node) ?? new Map<number, number>()).set(layers.layer[entry]!, entry));
    layers.self.forEach((column, weight) => { rest[weight]![node]! -= column[entry]!; });
  });
  const inside = new Map<number, number[]>();
  star.forEach((around, node) => { if (around >= 0) inside.set(around, [...(inside.get(around) ?? []), node]); });
  const kind = numberOf(out, "layer");
  const split = (at: number, nodes: number[]) => {
    const found = new Set(nodes.flatMap((node) => [...(byNode.get(node)?.keys() ?? [])]));
    for (const layer of [...found].sort((a, b) => a - b)) {
      const copies = new Map<number, number>();
      const own = (node: number) => {
        const entry = byNode.get(node)?.get(layer);
        return (weight: number) => (entry === undefined ? 0 : layers.self[weight]![entry]!);
      };
      const copy = (node: number): number => {
        let to = copies.get(node);
        if (to !== undefined) return to;
        if (node === at) to = push(out, place[at]!, numberOf(out, nameOf(columns, at).replace(/\*$/, String(layer))), kind, own(node));
        else to = push(out, copy(columns.parent[node]!), columns.name[node]!, columns.kind[node]!, own(node));
        copies.set(node, to);
        return to;
      };
      for (const node of nodes) if (byNode.get(node)?.has(layer)) copy(node);
    }
  };
  const needed = new Set<number>();  // nodes that keep something of their own, and those around them
  columns.parent.forEach((_, node) => {
    if (rest.every((column) => column[node]! <= 0)) return;
    for (let at = node; at >= 0 && !needed.has(at); at = columns.parent[at]!) needed.add(at);
  });
  columns.parent.forEach((parent, node) => {
    place.push(-1);
    if (star[node]! >= 0 && star[node] !== node && !needed.has(node)) return;
    place[node] = push(out, parent < 0 ? -1 : place[parent]!, columns.name[node]!, columns.kind[node]!, (weight) => rest[weight]![node]!);
    if (star[node] === node) split(node, inside.get(node)!);
  });
  return out;
}

// A tree that grows by names: the same name and kind in the same place is one node.
class Growing {
  tree = { parent: [-1], names: [""], shortNames: [""], kinds: [""], classes: [-1] };
  self = [0];
  private places = new Map<string, number>();
  constructor(tree: Tree, node: number) { this.name(0, tree, node); }
  private name(at: number, tree: Tree, node: number): void {
    this.tree.names[at] = tree.names[node]!;
    this.tree.shortNames[at] = tree.shortNames[node]!;
    this.tree.kinds[at] = tree.kinds[node]!;
    this.tree.classes[at] = tree.classes[node]!;
  }
  child(parent: number, tree: Tree, node: number): number {
    const key = `${parent} ${tree.kinds[node]} ${tree.names[node]}`;
    let at = this.places.get(key);
    if (at === undefined) {
      at = this.tree.parent.push(parent) - 1;
      this.self.push(0);
      this.name(at, tree, node);
      this.places.set(key, at);
    }
    return at;
  }
  done(): Grown {
    const { parent, ...texts } = this.tree;
    const children: number[][] = parent.map(() => []), depth = new Int32Array(parent.length);
    parent.forEach((around, node) => { if (around >= 0) { children[around]!.push(node); depth[node] = depth[around]! + 1; } });
    const self = Float64Array.from(this.self), total = Float64Array.from(self);
    for (let node = total.length - 1; node > 0; --node) total[parent[node]!]! += total[node]!;
    return { tree: { parent: Int32Array.from(parent), children, depth, ...texts }, weights: { self, total } };
  }
}
export interface Grown { tree: Tree; weights: Weights }
export interface Sandwich { callers: Grown; callees: Grown; places: number }

// One function with all its callers and all that it calls, merged over the places where it stands. Where it calls
// itself, only the outermost counts, so that both trees weigh what the function takes in total.
export function sandwich(tree: Tree, { self, total }: Weights, picked: number): Sandwich {
  const isIt = (node: number) => tree.names[node] === tree.names[picked] && tree.kinds[node] === tree.kinds[picked];
  const callers = new Growing(tree, picked), callees = new Growing(tree, picked);
  let places = 0;
  const below = (node: number, at: number) => {
    callees.self[at]! += self[node]!;
    for (const child of tree.children[node]!) below(child, callees.child(at, tree, child));
  };
  const visit = (node: number) => {
    if (!isIt(node)) { tree.children[node]!.forEach(visit); return; }
    if (total[node]! <= 0) return;
    places += 1;
    let at = 0;
    for (let around = tree.parent[node]!; around > 0; around = tree.parent[around]!) at = callers.child(at, tree, around);
    callers.self[at]! += total[node]!;
    below(node, 0);
  };
  visit(0);
  return { callers: callers.done(), callees: callees.done(), places };
}
