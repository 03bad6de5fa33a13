// A timeline in several resolutions: the overview of the run, and patches that know a part of it in more detail (a
// median step inside the page, an answer of the server). At every time the narrowest patch that covers it is shown.
import type { Lane, Timeline } from "../../data";
import { visible } from "../../visible";
import { nameCategory, stageCategory } from "../colours";
import type { Range } from "../scale";
import { shortName } from "../short_name";

export interface Patch {
  from: number; to: number; lanes: Map<string, PatchLane>; timeline: Timeline;
  names: string[];  // as they are shown
  shortNames: string[];  // of kernels
  byStage: Uint8Array; byName: Uint8Array;  // colours of names: as stages, as names
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
    from, to: timeline.window[1] - origin, lanes, timeline, names, shortNames: names.map(shortName),
    byStage: Uint8Array.from(timeline.names, stageCategory), byName: Uint8Array.from(timeline.names, nameCategory),
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

// First index whose value is above `limit`; the values rise.
export function firstAbove(values: Float64Array, limit: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! > limit) high = middle;
    else low = middle + 1;
  }
  return low;
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
