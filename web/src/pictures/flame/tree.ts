// A tree of call paths: totals, places, and the way from node to node.

export interface Columns { names: string[]; parent: number[]; name: number[]; kind: number[] }
export interface Tree { parent: Int32Array; children: number[][]; names: string[]; kinds: string[]; depth: Int32Array }

// Node 0 is the root. Where the data have several, they get one above them; `shift` is then 1.
export interface Rooted { tree: Tree; shift: 0 | 1 }

export function treeOf(columns: Columns, shown: (text: string) => string): Rooted {
  const roots = columns.parent.filter((parent) => parent < 0).length;
  const shift = roots === 1 && columns.parent[0]! < 0 ? 0 : 1;
  const count = columns.parent.length + shift;
  const label = columns.names.map(shown);
  const tree: Tree = {
    parent: new Int32Array(count).fill(-1), children: Array.from({ length: count }, () => []), depth: new Int32Array(count),
    names: new Array<string>(count).fill("all"), kinds: new Array<string>(count).fill("root"),
  };
  for (let from = 0; from < columns.parent.length; ++from) {
    const node = from + shift, parent = columns.parent[from]! + shift;
    tree.names[node] = label[columns.name[from]!] ?? "";
    tree.kinds[node] = label[columns.kind[from]!] ?? "";
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
  return [...tree.children[node]!].sort((a, b) => total[b]! - total[a]! || a - b);
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
