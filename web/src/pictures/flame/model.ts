// A flame graph of one run, or of two laid over each other, behind one face.
import { type Flame, type FlameDiff, flameWeights } from "../../data";
import { visible } from "../../visible";
import { fullChange } from "./change";
import type { Change } from "./draw";
import { type Rooted, type Tree, treeOf, type Weights, weigh } from "./tree";

export type Side = "after" | "before";
export interface FlameModel {
  tree: Tree; differential: boolean; usable: number[];  // weights that are not all zero
  weights(weight: number, side: Side): Weights;
  change(weight: number): Change | null;
  putTogether(weight: number): number;
  why: string | null;
}

export const weightNames = ["GPU time", "CPU time", "bytes"];
export const weightUnits = flameWeights.map((weight) => (weight === "bytes" ? "bytes" : "ns"));

const usableOf = (sides: Weights[][]): number[] => [0, 1, 2].filter((weight) => sides.some((side) => side[weight]!.total[0]! > 0));
const weighAll = (rooted: Rooted, self: number[][]): Weights[] => self.map((own) => weigh(rooted, own));

export function modelOf(flame: Flame): FlameModel {
  const rooted = treeOf(flame, visible);
  const weights = weighAll(rooted, flame.self);
  return {
    tree: rooted.tree, differential: false, usable: usableOf([weights]), weights: (weight) => weights[weight]!, change: () => null,
    putTogether: (weight) => flame.put_together[weight] ?? 0, why: flame.why,
  };
}

export function diffModelOf(diff: FlameDiff): FlameModel {
  const rooted = treeOf(diff, visible), { tree } = rooted;
  const sides = { before: weighAll(rooted, diff.before), after: weighAll(rooted, diff.after) };
  return {
    tree, differential: true, usable: usableOf([sides.before, sides.after]), weights: (weight, side) => sides[side][weight]!,
    change: (weight) => {
      const [before, after] = [sides.before[weight]!.total, sides.after[weight]!.total];
      return { before, after, full: fullChange(tree, before, after) };
    },
    putTogether: () => 0, why: null,
  };
}
