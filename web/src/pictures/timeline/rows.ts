// Lanes and curves of all patches in the order of the picture, under the names of their groups.
import type { Curve, Lane, LaneKind } from "../../data";
import { curveKey } from "./curve";
import { laneKey, type Patch } from "./patches";

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

// Stages above everything, what has only readings below.
function groupRank(group: Group): number {
  if (group.lanes.some(({ lane }) => lane.kind === "stages")) return 0;
  if (group.lanes.some(({ lane }) => lane.kind === "stream" || lane.kind === "copies" || lane.kind === "graphs")) return 1;
  return group.lanes.length > 0 ? 2 : 3;
}
