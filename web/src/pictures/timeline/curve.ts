// Readings over time below the lanes: the band from the lowest to the highest of each pixel.
import type { Curve } from "../../data";
import type { Range } from "../scale";
import type { Theme } from "../theme";
import type { Patch, Segment } from "./patches";

export const curveKey = (curve: Curve): string => JSON.stringify([curve.group, curve.name, curve.unit]);

const found = new WeakMap<Patch, Map<string, Curve>>();

export function curveOf(patch: Patch, key: string): Curve | undefined {
  let curves = found.get(patch);
  if (!curves) found.set(patch, (curves = new Map(patch.timeline.curves.map((curve) => [curveKey(curve), curve]))));
  return curves.get(key);
}

// 0 or the lowest, and the highest: the same for every window, so that zooming does not change heights.
export function extent({ low, high }: Curve): Range {
  let [least, most] = [0, 0];
  for (const value of low) least = Math.min(least, value);
  for (const value of high) most = Math.max(most, value);
  return most > least ? [least, most] : [least, least + 1];
}

// Index of the last reading at or before a time (relative to the run), -1 before the first.
export function readingAt(curve: Curve, from: number, time: number): number {
  let [low, high] = [0, curve.ts.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (curve.ts[middle]! + from > time) high = middle;
    else low = middle + 1;
  }
  return low - 1;
}

export interface CurveStyle { window: Range; width: number; height: number; theme: Theme; extent: Range }

export function drawCurve(context: CanvasRenderingContext2D, parts: Segment[], key: string, style: CurveStyle): void {
  for (const part of parts) {
    const curve = curveOf(part.patch, key);
    if (curve && curve.ts.length > 0) drawPart(context, part, curve, style);
  }
}

function drawPart(context: CanvasRenderingContext2D, { from, to, patch }: Segment, curve: Curve, style: CurveStyle): void {
  const perNs = style.width / (style.window[1] - style.window[0]);
  const [least, most] = style.extent;
  const y = (value: number) => style.height - 3 - ((value - least) / (most - least)) * (style.height - 6);
  const x = (index: number) => (curve.ts[index]! + patch.from - style.window[0]) * perNs;
  const first = Math.max(0, readingAt(curve, patch.from, from)), last = Math.min(curve.ts.length - 1, readingAt(curve, patch.from, to) + 1);
  context.save();
  context.beginPath();
  context.rect((from - style.window[0]) * perNs, 0, (to - from) * perNs, style.height);
  context.clip();
  context.fillStyle = context.strokeStyle = style.theme.line;
  context.beginPath();
  for (let index = first; index <= last; ++index) context.lineTo(x(index), y(curve.high[index]!));
  context.lineWidth = 1.25;
  context.stroke();
  for (let index = last; index >= first; --index) context.lineTo(x(index), y(curve.low[index]!));
  context.closePath();
  context.globalAlpha = 0.3;
  context.fill();
  context.restore();
}
