// The modules of one stage as a tree: "layers.3.mlp" stands in "layers.3", which stands in "layers".
import { list, onGpu, type Report, type Row } from "../data";

export interface ModuleNode {
  path: string; label: string; level: number; parent: ModuleNode | null; children: ModuleNode[];
  row: Row | null;           // null: only a part of other names
  timeNs: number; share: number | null; calls: number | null;
  mfu: number | null; mbu: number | null; bytes: number | null; heldBytes: number | null;
  why: string | null;
}

export type ModuleColumn = "label" | "timeNs" | "share" | "mfu" | "mbu" | "bytes" | "heldBytes" | "calls";

const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

export function moduleTree(report: Report, stage: string): ModuleNode[] {
  const nodes = new Map<string, ModuleNode>();
  const roots: ModuleNode[] = [];
  const node = (path: string): ModuleNode => {
    const known = nodes.get(path);
    if (known) return known;
    const cut = path.lastIndexOf(".");
    const parent = cut > 0 ? node(path.slice(0, cut)) : null;
    const made: ModuleNode = {
      path, label: path.slice(cut > 0 ? cut + 1 : 0), level: parent ? parent.level + 1 : 1, parent, children: [],
      row: null, timeNs: 0, share: null, calls: null, mfu: null, mbu: null, bytes: null, heldBytes: null, why: null,
    };
    nodes.set(path, made);
    (parent ? parent.children : roots).push(made);
    return made;
  };
  for (const row of list(report["modules"])) {
    if (row["stage"] === stage && typeof row["name"] === "string" && row["name"]) fill(node(row["name"]), row);
  }
  const total = stageTime(report, stage), held = heldAtPeak(report);
  for (const root of roots) finish(root, total, held);
  return sortedTree(roots, "timeNs", true);
}

function fill(node: ModuleNode, row: Row) {
  Object.assign(node, { row, timeNs: number(row["time_ns"]) ?? 0, calls: number(row["calls"]), mfu: number(row["mfu"]),
                        mbu: number(row["mbu"]), bytes: number(row["bytes"]), why: typeof row["why"] === "string" ? row["why"] : null });
}

// What the times are a share of: on a GPU the kernels of the stage, else the durations of its steps.
export function stageTime(report: Report, stage: string): number {
  const found = list(report["stages"]).find((each) => each["name"] === stage);
  return number(found?.[onGpu(report) ? "kernel_ns" : "steps_ns"]) ?? 0;
}

function finish(node: ModuleNode, total: number, held: Map<string, number>) {
  for (const child of node.children) finish(child, total, held);
  if (!node.row) {  // nobody measured it: what stands in it
    node.timeNs = node.children.reduce((sum, child) => sum + child.timeNs, 0);
    const known = node.children.map((child) => child.bytes).filter((bytes) => bytes !== null);
    node.bytes = known.length ? known.reduce((sum, bytes) => sum + bytes, 0) : null;
    node.why = "only the modules in it were recorded";
  }
  node.share = total > 0 ? node.timeNs / total : null;
  const own = held.get(node.path) ?? 0;
  const inside = node.row ? 0 : node.children.reduce((sum, child) => sum + (child.heldBytes ?? 0), 0);
  node.heldBytes = held.size ? own + inside : null;
}

// Device memory that was there at its peak, by the modules that were open when it was allocated.
function heldAtPeak(report: Report): Map<string, number> {
  const held = new Map<string, number>();
  for (const device of list(report["device_memory"]?.["devices"])) {
    for (const row of list(device["allocations"]?.["at_peak"])) {
      const open = new Set(String(row["ranges"] ?? "").split(" › "));
      for (const name of open) held.set(name, (held.get(name) ?? 0) + Number(row["bytes"] ?? 0));
    }
  }
  return held;
}

export function sortedTree(nodes: ModuleNode[], column: ModuleColumn, down: boolean): ModuleNode[] {
  const sign = down ? -1 : 1;
  const compare = (one: ModuleNode, other: ModuleNode) => {
    const a = one[column], b = other[column];
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return typeof a === "number" && typeof b === "number" ? sign * (a - b) || byName(one, other) : sign * byName(one, other);
  };
  return [...nodes].sort(compare).map((node) => ({ ...node, children: sortedTree(node.children, column, down) }));
}
const byName = (one: ModuleNode, other: ModuleNode) => one.label.localeCompare(other.label, "en", { numeric: true });

// The rows that are seen: children of open nodes; with a filter, what matches and what it stands in.
export function seen(nodes: ModuleNode[], open: ReadonlySet<string>, filter: string): ModuleNode[] {
  const wanted = filter.trim().toLowerCase();
  const out: ModuleNode[] = [];
  const matches = (node: ModuleNode): boolean => node.path.toLowerCase().includes(wanted) || node.children.some(matches);
  const walk = (all: ModuleNode[]) => {
    for (const node of all) {
      if (wanted && !matches(node)) continue;
      out.push(node);
      if (wanted ? node.children.some(matches) : open.has(node.path)) walk(node.children);
    }
  };
  walk(nodes);
  return out;
}

// Groups are open at first, as long as that fits a screen.
export function openAtFirst(nodes: ModuleNode[]): Set<string> {
  const open = new Set<string>();
  for (const node of nodes) if (!node.row && node.children.length <= 48) open.add(node.path);
  const deepest = nodes.length === 1 ? nodes[0] : undefined;
  if (deepest && !open.has(deepest.path)) open.add(deepest.path);
  return open;
}

export function allPaths(nodes: ModuleNode[]): string[] {
  return nodes.flatMap((node) => (node.children.length ? [node.path, ...allPaths(node.children)] : []));
}

export const size = (nodes: ModuleNode[]): number => nodes.reduce((sum, node) => sum + 1 + size(node.children), 0);
