// What is said about slices: one of them, those of a lane in the window, those whose name was searched for.
import type { LaneKind } from "../../data";
import type { Range } from "../scale";
import { type Patch, type Segment, type SliceRef, visibleRange } from "./patches";

export interface SliceFacts {
  name: string; stage: string; begin: number; duration: number; count: number; busy: number; estimated: boolean;
  id: number; table: string | null; lane: string; kind: LaneKind;
}

export function factsOf({ patch, lane, index }: SliceRef): SliceFacts {
  const { lane: data, begin, end } = patch.lanes.get(lane)!;
  return {
    name: patch.names[data.label[index]!] ?? "", stage: patch.names[data.stage[index]!] ?? "",
    begin: begin[index]!, duration: end[index]! - begin[index]!, count: data.count[index] ?? 1,
    busy: data.busy[index] ?? 1, estimated: data.estimated[index] === 1, id: data.id[index] ?? 0,
    table: data.table, lane: data.name, kind: data.kind,
  };
}

export interface LaneTotal { covered: number; slices: number; estimated: number }

export function laneTotal(parts: Segment[], lane: string): LaneTotal {
  const total = { covered: 0, slices: 0, estimated: 0 };
  forEachSlice(parts, lane, (ref, covered) => {
    const data = ref.patch.lanes.get(lane)!.lane;
    total.covered += covered;
    total.slices += data.count[ref.index] ?? 1;
    if (data.estimated[ref.index] === 1) total.estimated += covered;
  });
  return total;
}

// Calls for every slice in the window with the time that it covers there.
export function forEachSlice(parts: Segment[], lane: string, call: (ref: SliceRef, covered: number, part: Segment) => void): void {
  for (const part of parts) {
    const { from, to, patch } = part;
    const columns = patch.lanes.get(lane);
    if (!columns) continue;
    const [first, last] = visibleRange(columns, from, to);
    for (let index = first; index < last; ++index) {
      const length = Math.min(columns.end[index]!, to) - Math.max(columns.begin[index]!, from);
      call({ patch, lane, index }, length * (columns.lane.busy[index] ?? 1), part);
    }
  }
}

export interface NameTotal { name: string; covered: number; slices: number; longest: number }

// By name, most time first. A merged slice counts under the name that it carries: the one with most of its time.
export function nameTotals(parts: Segment[], lane: string, most: number): NameTotal[] {
  const byName = new Map<string, NameTotal>();
  forEachSlice(parts, lane, (ref, covered) => {
    const data = ref.patch.lanes.get(lane)!.lane;
    const name = ref.patch.names[data.label[ref.index]!] ?? "";
    const total = byName.get(name) ?? { name, covered: 0, slices: 0, longest: 0 };
    total.covered += covered;
    total.slices += data.count[ref.index] ?? 1;
    if (data.count[ref.index] === 1) total.longest = Math.max(total.longest, covered);
    byName.set(name, total);
  });
  return [...byName.values()].sort((a, b) => b.covered - a.covered).slice(0, most);
}

// One entry per name: whether it contains what is searched for, in any case. Empty finds nothing.
export function matches(names: string[], query: string): Uint8Array {
  const wanted = query.trim().toLowerCase();
  return Uint8Array.from(names, (name) => (wanted !== "" && name.toLowerCase().includes(wanted) ? 1 : 0));
}

export interface Found { kind: LaneKind; covered: number; slices: number; longest: SliceRef | null }

// Per kind of lane, since a range covers what runs inside it.
export function findSlices(window: Segment[], lanes: string[], query: string): Found[] {
  const byKind = new Map<LaneKind, Found & { length: number }>();
  const matching = new Map(window.map(({ patch }) => [patch, matches(patch.names, query)]));
  for (const lane of lanes) {
    forEachSlice(window, lane, (ref, covered) => {
      const data = ref.patch.lanes.get(lane)!.lane;
      if (matching.get(ref.patch)![data.label[ref.index]!] !== 1) return;
      const found = byKind.get(data.kind) ?? { kind: data.kind, covered: 0, slices: 0, longest: null, length: -1 };
      found.covered += covered;
      found.slices += data.count[ref.index] ?? 1;
      if (covered > found.length) { found.longest = ref; found.length = covered; }
      byKind.set(data.kind, found);
    });
  }
  return [...byKind.values()].sort((a, b) => b.covered - a.covered).map(({ length: _, ...found }) => found);
}

export interface Resolution { shown: number; all: number; mergedNs: number }

// How far the window is merged: slices as drawn, slices as recorded, and the longest piece that stands for several. What
// reaches over the edge of a patch is counted where it begins.
export function resolution(parts: Segment[], lanes: string[]): Resolution {
  const result = { shown: 0, all: 0, mergedNs: 0 };
  for (const lane of lanes) {
    forEachSlice(parts, lane, ({ patch, index }, _, part) => {
      const columns = patch.lanes.get(lane)!;
      if (columns.begin[index]! < part.from && part !== parts[0]) return;
      const stands = columns.lane.count[index] ?? 1;
      result.shown += 1;
      result.all += stands;
      if (stands > 1) result.mergedNs = Math.max(result.mergedNs, columns.end[index]! - columns.begin[index]!);
    });
  }
  return result;
}

export const windowOf = (ref: SliceRef): Range => {
  const { begin, end } = ref.patch.lanes.get(ref.lane)!;
  return [begin[ref.index]!, end[ref.index]!];
};

export interface Place { name: string; window: Range }

// From the first to the last step of each stage, in order of time.
export function stagePlaces({ lanes, names }: Patch): Place[] {
  const places = new Map<string, Place>();
  for (const { lane, begin, end } of lanes.values()) {
    if (lane.kind !== "stages") continue;
    lane.label.forEach((label, index) => {
      const name = names[label] ?? "", place = places.get(name);
      if (!place) places.set(name, { name, window: [begin[index]!, end[index]!] });
      else place.window = [Math.min(place.window[0], begin[index]!), Math.max(place.window[1], end[index]!)];
    });
  }
  return [...places.values()].sort((a, b) => a.window[0] - b.window[0]);
}
