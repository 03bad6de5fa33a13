// What two trees laid over each other say about a node.
import { change, inUnit } from "../units";
import type { Tree } from "./tree";

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
