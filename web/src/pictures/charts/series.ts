// Lines over time or steps.
import type { Range, Scale } from "../scale";
import { inUnit } from "../units";

export interface Series {
  name: string; x: number[]; y: number[];
  low?: number[];     // y is then the highest of the readings in each place, and the band between is filled
  stepped?: boolean;  // holds until the next value, as memory does
}

export interface Marks { least: number; median: number; most: number }

// Median by nearest rank: a value that was really there.
export function marksOf(values: number[]): Marks | null {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  return { least: sorted[0]!, median: sorted[Math.ceil(sorted.length / 2) - 1]!, most: sorted[sorted.length - 1]! };
}

export function extentOf(values: number[]): Range {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least <= most ? [least, most] : [0, 1];
}

// Index of the value nearest to `at`; the values rise. -1: there are none.
export function nearestIndex(values: number[], at: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < at) low = middle + 1;
    else high = middle;
  }
  if (low === values.length) return values.length - 1;
  return low > 0 && at - values[low - 1]! <= values[low]! - at ? low - 1 : low;
}

export function linePath({ x, y, stepped }: Series, xs: Scale, ys: Scale): string {
  let path = "";
  for (let index = 0; index < x.length; ++index) {
    const [right, up] = [xs.toPixel(x[index]!).toFixed(1), ys.toPixel(y[index]!).toFixed(1)];
    path += index === 0 ? `M${right} ${up}` : stepped ? `H${right}V${up}` : `L${right} ${up}`;
  }
  return path;
}

export function bandPath({ x, y, low }: Series, xs: Scale, ys: Scale): string {
  if (!low) return "";
  const corner = (index: number, value: number) => `${xs.toPixel(x[index]!).toFixed(1)} ${ys.toPixel(value).toFixed(1)}`;
  const up = y.map((value, index) => corner(index, value)), down = low.map((value, index) => corner(index, value)).reverse();
  return up.length === 0 ? "" : `M${up.join("L")}L${down.join("L")}Z`;
}

// "decode: least 5 ms, median 6 ms, most 9 ms"
export function summary(series: Series[], unit: string): string {
  return series.map(({ name, y }) => {
    const marks = marksOf(y);
    if (!marks) return `${name}: no values`;
    return `${name}: least ${inUnit(marks.least, unit)}, median ${inUnit(marks.median, unit)}, most ${inUnit(marks.most, unit)}`;
  }).join("; ");
}
