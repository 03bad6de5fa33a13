// What lies in a selected part of the time: kernels by class, stage and name, how busy the device was, and why not.
import type { Range } from "../drawing";
import { gapOf, gaps } from "./gaps";
import { forEachSlice, type Group, type LaneRow, type Patch, type Segment, segments } from "./patches";

export interface Sum { name: string; ns: number; count: number }
export interface DeviceSums {
  name: string;
  busy: number;               // of the time, with at least one kernel or copy executing
  kernels: Sum; copies: Sum;  // kernels of several streams add up
  byClass: Sum[]; byStage: Sum[]; byName: Sum[]; gaps: Sum[];  // most time first
}
export interface Selection { span: number; steps: Sum[]; devices: DeviceSums[] }

class Sums {
  private all = new Map<string, Sum>();
  add(name: string, ns: number, count: number): void {
    const sum = this.all.get(name) ?? { name, ns: 0, count: 0 };
    sum.ns += ns;
    sum.count += count;
    this.all.set(name, sum);
  }
  sorted(): Sum[] { return [...this.all.values()].sort((a, b) => b.ns - a.ns); }
  whole(name: string): Sum {
    const all = [...this.all.values()];
    return { name, ns: all.reduce((sum, each) => sum + each.ns, 0), count: all.reduce((sum, each) => sum + each.count, 0) };
  }
}

export function selectionOf(patches: Patch[], groups: Group[], range: Range): Selection {
  const parts = segments(patches, range);
  const steps = new Sums();
  for (const { lanes } of groups) {
    for (const row of lanes.filter(({ lane }) => lane.kind === "stages")) {
      forEachSlice(parts, row.key, (ref, covered) => {
        const data = ref.patch.lanes.get(row.key)!.lane;
        steps.add(ref.patch.names[data.label[ref.index]!] ?? "", covered, data.count[ref.index] ?? 1);
      });
    }
  }
  const devices = groups.filter(({ lanes }) => lanes.some(({ lane }) => lane.kind === "stream" || lane.kind === "copies"));
  return { span: range[1] - range[0], steps: steps.sorted(), devices: devices.map((group) => deviceSums(parts, group, range)) };
}

function deviceSums(parts: Segment[], group: Group, range: Range): DeviceSums {
  const byClass = new Sums(), byStage = new Sums(), byName = new Sums(), copies = new Sums(), causes = new Sums();
  const of = (kind: LaneRow["lane"]["kind"]) => group.lanes.filter(({ lane }) => lane.kind === kind);
  for (const { key } of of("stream")) {
    forEachSlice(parts, key, ({ patch, index }, covered) => {
      const { lane } = patch.lanes.get(key)!, count = lane.count[index] ?? 1, label = lane.label[index]!;
      byClass.add(patch.timeline.classes?.[label] ?? "other", covered, count);
      byStage.add(patch.names[lane.stage[index]!] ?? "no stage", covered, count);
      byName.add(patch.shortNames[label] ?? "", covered, count);
    });
  }
  for (const { key } of of("copies")) {
    forEachSlice(parts, key, ({ patch, index }, covered) => {
      const { lane } = patch.lanes.get(key)!;
      copies.add(patch.names[lane.label[index]!] ?? "", covered, lane.count[index] ?? 1);
    });
  }
  for (const { key } of of("idle")) {
    forEachSlice(parts, key, ({ patch, index }, covered) => {
      const { lane } = patch.lanes.get(key)!;
      causes.add(gaps[gapOf(patch.names[lane.label[index]!] ?? "")]!.name, covered, lane.count[index] ?? 1);
    });
  }
  const keys = [...of("stream"), ...of("copies")].map(({ key }) => key);
  return {
    name: group.name, busy: covered(parts, keys) / Math.max(1, range[1] - range[0]), kernels: byName.whole("kernels"), copies: copies.whole("copies"),
    byClass: byClass.sorted(), byStage: byStage.sorted(), byName: byName.sorted(), gaps: causes.sorted(),
  };
}

// Time with at least one slice of any of the lanes. Of merged slices only the share of their time that is covered is
// known: where they overlap, as if they were independent.
export function covered(parts: Segment[], keys: string[]): number {
  const edges: { at: number; free: number; opens: boolean }[] = [];
  for (const key of keys) {
    forEachSlice(parts, key, ({ patch, index }, _, part) => {
      const { begin, end, lane } = patch.lanes.get(key)!, free = 1 - (lane.busy[index] ?? 1);
      edges.push({ at: Math.max(begin[index]!, part.from), free, opens: true }, { at: Math.min(end[index]!, part.to), free, opens: false });
    });
  }
  edges.sort((a, b) => a.at - b.at);
  let sum = 0, last = 0, full = 0, free = 1, open = 0;
  for (const edge of edges) {
    if (open > 0) sum += (edge.at - last) * (full > 0 ? 1 : 1 - free);
    last = edge.at;
    open += edge.opens ? 1 : -1;
    if (edge.free <= 0) full += edge.opens ? 1 : -1;
    else free = edge.opens ? free * edge.free : free / edge.free;
    if (open === 0) free = 1;
  }
  return sum;
}
