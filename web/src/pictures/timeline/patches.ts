// A timeline in several resolutions: the overview of the run, and patches that know a part of it in more detail (a
// median step inside the page, an answer of the server). At every time the narrowest patch that covers it is shown.
import type { Curve, Lane, LaneKind, Timeline } from "../../data";
import { visible } from "../../text";
import { nameCategory, type Range, stageCategory, firstAbove } from "../drawing";
import { curveKey, curveOf, readingAt } from "./draw";
import { classOf, gapOf } from "./gaps";

export interface Patch {
  from: number; to: number; lanes: Map<string, PatchLane>; timeline: Timeline;
  names: string[];  // as they are shown
  shortNames: string[];  // of kernels
  byStage: Uint8Array; byName: Uint8Array; byClass: Uint8Array; byGap: Uint8Array;  // looks of names: as stages, as names, …
}

// Columns of a lane, times relative to the begin of the run.
export interface PatchLane { lane: Lane; begin: Float64Array; end: Float64Array }

// A part of the time and the patch that shows it.
export interface Segment { from: number; to: number; patch: Patch }

export interface SliceRef { patch: Patch; lane: string; index: number }

export const laneKey = (lane: Lane): string => JSON.stringify([lane.kind, lane.group, lane.name]);

export function makePatch(timeline: Timeline, origin: number): Patch {
  const from = timeline.window[0] - origin;
  const lanes = new Map<string, PatchLane>();
  for (const lane of timeline.lanes) {
    lanes.set(laneKey(lane), {
      lane, begin: Float64Array.from(lane.begin, (ns) => ns + from), end: Float64Array.from(lane.end, (ns) => ns + from),
    });
  }
  const names = timeline.names.map(visible);
  return {
    from, to: timeline.window[1] - origin, lanes, timeline, names,
    shortNames: names.map((name, index) => visible(timeline.short_names?.[index] ?? "") || name),
    byStage: Uint8Array.from(timeline.names, stageCategory), byName: Uint8Array.from(timeline.names, nameCategory),
    byClass: Uint8Array.from(timeline.names, (_, index) => classOf(timeline.classes?.[index])), byGap: Uint8Array.from(timeline.names, gapOf),
  };
}

// Widest first, so that what comes later covers what came before.
export const coarseFirst = (patches: Patch[]): Patch[] => [...patches].sort((a, b) => b.to - b.from - (a.to - a.from));

// The window cut into parts that have one finest patch each.
export function segments(patches: Patch[], [from, to]: Range): Segment[] {
  const edges = [from, to];
  for (const patch of patches) edges.push(patch.from, patch.to);
  const inside = [...new Set(edges.filter((edge) => edge >= from && edge <= to))].sort((a, b) => a - b);
  const found: Segment[] = [];
  for (let index = 0; index + 1 < inside.length; ++index) {
    const [begin, end] = [inside[index]!, inside[index + 1]!];
    const patch = finest(patches, begin, end);
    const last = found[found.length - 1];
    if (patch && last?.patch === patch && last.to === begin) last.to = end;
    else if (patch) found.push({ from: begin, to: end, patch });
  }
  return found;
}

function finest(patches: Patch[], from: number, to: number): Patch | null {
  let best: Patch | null = null;
  for (const patch of patches) {
    const covers = patch.from <= from && patch.to >= to;
    if (covers && (!best || patch.to - patch.from < best.to - best.from)) best = patch;
  }
  return best;
}

// Slices that overlap (from, to): [first, behind the last). They do not overlap each other, so ends rise as begins do.
export function visibleRange({ begin, end }: PatchLane, from: number, to: number): Range {
  const first = firstAbove(end, from);
  let last = firstAbove(begin, to);
  while (last > first && begin[last - 1]! >= to) --last;
  return [first, last];
}

// The slice at that time, or the nearest that is at most `reach` away: what is thinner than a pixel can be hit.
export function sliceAt(parts: Segment[], lane: string, time: number, reach: number): SliceRef | null {
  const segment = parts.find((part) => time >= part.from && time <= part.to);
  const columns = segment?.patch.lanes.get(lane);
  if (!segment || !columns) return null;
  const next = firstAbove(columns.end, time);
  let best = -1, distance = reach;
  for (const index of [next, next - 1]) {
    if (index < 0 || index >= columns.begin.length) continue;
    const away = Math.max(columns.begin[index]! - time, time - columns.end[index]!, 0);
    if (away <= distance && (best < 0 || away < distance)) { best = index; distance = away; }
  }
  return best < 0 ? null : { patch: segment.patch, lane, index: best };
}

// The next or previous slice of the lane from a time on, as the keyboard walks: across patches.
export function neighbour(parts: Segment[], lane: string, time: number, step: 1 | -1): SliceRef | null {
  const order = step === 1 ? parts : [...parts].reverse();
  for (const part of order) {
    const columns = part.patch.lanes.get(lane);
    if (!columns) continue;
    const [overlapping, last] = visibleRange(columns, part.from, part.to);
    const begun = overlapping < last && columns.begin[overlapping]! < part.from;  // shown by the part before, too
    const first = begun && part !== parts[0] ? overlapping + 1 : overlapping;
    const index = step === 1 ? Math.max(first, firstAbove(columns.begin, time)) : beforeTime(columns, time, last);
    if (index >= first && index < last) return { patch: part.patch, lane, index };
  }
  return null;
}

function beforeTime({ begin }: PatchLane, time: number, last: number): number {
  let index = Math.min(last, firstAbove(begin, time)) - 1;
  while (index >= 0 && begin[index]! >= time) --index;
  return index;
}

// What is said about slices: one of them, those of a lane in the window, those whose name was searched for.
export interface SliceFacts {
  name: string; short: string; stage: string; begin: number; duration: number; count: number; busy: number; estimated: boolean;
  id: number; table: string | null; lane: string; kind: LaneKind;
}

export function factsOf({ patch, lane, index }: SliceRef): SliceFacts {
  const { lane: data, begin, end } = patch.lanes.get(lane)!;
  return {
    name: patch.names[data.label[index]!] ?? "", short: (data.kind === "stream" && patch.shortNames[data.label[index]!]) || "",
    stage: patch.names[data.stage[index]!] ?? "",
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

// Lanes and curves of all patches in the order of the picture, under the names of their groups.
export interface LaneRow { key: string; lane: Lane }
export interface CurveRow { key: string; curve: Curve }
export interface Group { name: string; lanes: LaneRow[]; curves: CurveRow[] }

const kindOrder: LaneKind[] = ["stages", "ranges", "stream", "copies", "graphs", "idle", "api"];

export const laneHeight = (kind: LaneKind): number => (kind === "stages" ? 22 : kind === "idle" ? 14 : 18);
export const curveHeight = 40;

// The overview says the order; what only a detail has comes behind its like.
export function rowsOf(patches: Patch[]): Group[] {
  const groups = new Map<string, Group>();
  const groupOf = (name: string): Group => {
    let group = groups.get(name);
    if (!group) groups.set(name, (group = { name, lanes: [], curves: [] }));
    return group;
  };
  const seen = new Set<string>();
  for (const { timeline } of patches) {
    for (const lane of timeline.lanes) {
      const key = laneKey(lane);
      if (!seen.has(key)) groupOf(lane.group).lanes.push({ key, lane });
      seen.add(key);
    }
    for (const curve of timeline.curves) {
      const key = `curve ${curveKey(curve)}`;
      if (!seen.has(key)) groupOf(curve.group).curves.push({ key: curveKey(curve), curve });
      seen.add(key);
    }
  }
  for (const group of groups.values()) group.lanes.sort((a, b) => kindOrder.indexOf(a.lane.kind) - kindOrder.indexOf(b.lane.kind));
  return [...groups.values()].sort((a, b) => groupRank(a) - groupRank(b));
}

// Without lanes and readings that have nothing in the window; the lane in use stays.
export function inWindow(groups: Group[], parts: Segment[], curveParts: Segment[], used: string | undefined): Group[] {
  const hasSlices = ({ key }: LaneRow) => key === used || parts.some(({ from, to, patch }) => {
    const columns = patch.lanes.get(key), [first, last] = columns ? visibleRange(columns, from, to) : [0, 0];
    return last > first;
  });
  const hasReadings = ({ key }: CurveRow) => curveParts.some(({ from, to, patch }) => {
    const curve = curveOf(patch, key);
    return curve !== undefined && readingAt(curve, patch.from, to) + 1 > Math.max(0, readingAt(curve, patch.from, from)) &&
      (curve.ts[curve.ts.length - 1] ?? -1) + patch.from > from;
  });
  return groups.map((group) => ({ ...group, lanes: group.lanes.filter(hasSlices), curves: group.curves.filter(hasReadings) }))
    .filter((group) => group.lanes.length + group.curves.length > 0);
}

// Stages above everything, what has only readings below.
function groupRank(group: Group): number {
  if (group.lanes.some(({ lane }) => lane.kind === "stages")) return 0;
  if (group.lanes.some(({ lane }) => lane.kind === "stream" || lane.kind === "copies" || lane.kind === "graphs")) return 1;
  return group.lanes.length > 0 ? 2 : 3;
}
