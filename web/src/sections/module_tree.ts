// The modules of one stage as a tree: "layers.3.mlp" stands in "layers.3", which stands in "layers".
import { list, onGpu, type Report, type Row } from "../data";
import { sorted } from "../table";

export interface ModuleNode {
  path: string; label: string; level: number; parent: ModuleNode | null; children: ModuleNode[];
  recorded: boolean;  // false: only a part of other names
  row: Row;           // of the report; time_ns and share with what stands in it, and held_bytes
}

const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const sum = (nodes: ModuleNode[], key: string): number => nodes.reduce((all, { row }) => all + (number(row[key]) ?? 0), 0);

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
      recorded: false, row: { why: "only the modules in it were recorded" },
    };
    nodes.set(path, made);
    (parent ? parent.children : roots).push(made);
    return made;
  };
  for (const row of list(report["modules"])) {
    if (row["stage"] !== stage || typeof row["name"] !== "string" || !row["name"]) continue;
    Object.assign(node(row["name"]), { recorded: true, row: { ...row } });
  }
  const total = stageTime(report, stage), held = heldAtPeak(report);
  for (const root of roots) finish(root, total, held);
  return sortedTree(roots, "time_ns", true);
}

// What the times are a share of: on a GPU the kernels of the stage, else the durations of its steps.
export function stageTime(report: Report, stage: string): number {
  const found = list(report["stages"]).find((each) => each["name"] === stage);
  return number(found?.[onGpu(report) ? "kernel_ns" : "steps_ns"]) ?? 0;
}

function finish({ path, children, recorded, row }: ModuleNode, total: number, held: Map<string, number>) {
  for (const child of children) finish(child, total, held);
  if (!recorded) Object.assign(row, { time_ns: sum(children, "time_ns"), bytes: sum(children, "bytes") || undefined });
  row["share"] = total > 0 ? row["time_ns"] / total : null;
  row["held_bytes"] = (held.get(path) ?? 0) + (recorded ? 0 : sum(children, "held_bytes")) || undefined;
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

// Brothers that are equal come by name.
export function sortedTree(nodes: ModuleNode[], key: string, down: boolean): ModuleNode[] {
  const rows = sorted(nodes.map((node): Row => ({ ...node.row, label: node.label, node })), { key: "label", down: false });
  return sorted(rows, { key, down }).map(({ node }) => ({ ...(node as ModuleNode), children: sortedTree(node.children, key, down) }));
}

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
  for (const node of nodes) if (!node.recorded && node.children.length <= 48) open.add(node.path);
  const deepest = nodes.length === 1 ? nodes[0] : undefined;
  if (deepest && !open.has(deepest.path)) open.add(deepest.path);
  return open;
}

export function allPaths(nodes: ModuleNode[]): string[] {
  return nodes.flatMap((node) => (node.children.length ? [node.path, ...allPaths(node.children)] : []));
}

export const size = (nodes: ModuleNode[]): number => nodes.reduce((sum, node) => sum + 1 + size(node.children), 0);
