// Slices of a lane on its canvas. What is thinner than a pixel is added up per pixel, so that the cost is bounded by
// the width of the picture and a look at each slice in view.
import type { Curve } from "../../data";
import { fitted, patternOf, type Theme } from "../canvas";
import { firstAbove, parseColour, type Range, textOn } from "../drawing";
import { type Patch, type PatchLane, type Segment, type SliceRef, visibleRange } from "./patches";

export type ColourBy = "stage" | "class" | "name";
export interface LaneStyle {
  window: Range; width: number; height: number; theme: Theme;
  colourBy: ColourBy;
  found: Map<Patch, Uint8Array> | null;  // names that were searched for; null: no search
  selected: SliceRef | null;
}

export const fontSize = 11;
const faint = 0.15;
const shades = 8;  // of pixels with thin slices

// A rectangle to fill; consecutive ones of a look become one.
interface Box { x: number; end: number; category: number; alpha: number; estimated: boolean }

export function drawLane(context: CanvasRenderingContext2D, parts: Segment[], lane: string, style: LaneStyle): void {
  context.font = `${fontSize}px ${style.theme.font}`;
  context.textBaseline = "middle";
  for (const part of parts) {
    const columns = part.patch.lanes.get(lane);
    if (columns) drawPart(context, part, columns, style);
  }
  outline(context, lane, style);
}

function drawPart(context: CanvasRenderingContext2D, part: Segment, columns: PatchLane, style: LaneStyle): void {
  const { lane, begin, end } = columns;
  const [origin, perNs] = [style.window[0], style.width / (style.window[1] - style.window[0])];
  const [first, last] = visibleRange(columns, part.from, part.to);
  const found = style.found?.get(part.patch);
  const categories = categoryColumn(part.patch, columns, style);
  const pixel: Box = { x: -1, end: -1, category: -1, alpha: 0, estimated: false };  // that thin slices are added up in
  let longest = 0, run: Box | null = null;  // run: neighbouring pixels that look the same are filled at once
  const fillRun = () => { if (run) fill(context, run, style); run = null; };
  const flush = () => {
    const alpha = Math.ceil(pixel.alpha * shades) / shades;
    const alike = run && run.end === pixel.x && run.category === pixel.category && run.alpha === alpha && run.estimated === pixel.estimated;
    if (run && alike) run.end = pixel.end;
    else if (alpha > 0) { fillRun(); run = { ...pixel, alpha }; }
    pixel.alpha = longest = 0;
  };
  for (let index = first; index < last; ++index) {
    const x = (Math.max(begin[index]!, part.from) - origin) * perNs;
    const right = (Math.min(end[index]!, part.to) - origin) * perNs;
    const weak = found && found[lane.label[index]!] !== 1 ? faint : 1;
    const covered = (right - x) * (lane.busy[index] ?? 1) * weak;
    if (right - x < 1) {
      if (Math.floor(x) !== pixel.x) { flush(); pixel.x = Math.floor(x); pixel.end = pixel.x + 1; }
      pixel.alpha = Math.min(1, pixel.alpha + Math.max(covered, 0.12 * weak));
      if (covered >= longest) { longest = covered; pixel.category = categories(index); pixel.estimated = lane.estimated[index] === 1; }
      continue;
    }
    flush();
    fillRun();
    const alpha = weak * (0.35 + 0.65 * (lane.busy[index] ?? 1));
    fill(context, { x, end: right, category: categories(index), alpha, estimated: lane.estimated[index] === 1 }, style);
    const roomy = right - x > 24 && style.height > 12 && weak === 1;
    if (roomy) write(context, sliceText(part.patch, columns, index), [x, right], categories(index), style);
  }
  flush();
  fillRun();
}

// Looks: categories, then classes of kernels, causes of gaps, and what has no stage.
const firstClass = 32, firstGap = 64, noStage = 254;
const isGap = (category: number): boolean => category >= firstGap && category < noStage;

function categoryColumn(patch: Patch, { lane }: PatchLane, style: LaneStyle): (index: number) => number {
  if (lane.kind === "idle") return (index) => firstGap + patch.byGap[lane.label[index]!]!;
  if (lane.kind === "stages") return (index) => patch.byStage[lane.label[index]!] ?? noStage;
  if (style.colourBy === "class" && lane.kind === "stream") return (index) => firstClass + patch.byClass[lane.label[index]!]!;
  if (style.colourBy === "name") return (index) => patch.byName[lane.label[index]!] ?? noStage;
  return (index) => (lane.stage[index]! < 0 ? noStage : patch.byStage[lane.stage[index]!]!);
}

function colourOf(category: number, theme: Theme): string {
  if (category === noStage) return theme.muted;
  if (isGap(category)) return theme.gaps[category - firstGap]!;
  return category >= firstClass ? theme.classes[category - firstClass]! : theme.categories[category]!;
}

function fill(context: CanvasRenderingContext2D, { x, end, category, alpha, estimated }: Box, { height, theme }: LaneStyle): void {
  // Slices of more than three pixels leave a line between them, so that they can be counted.
  const width = end - x > 3 ? end - x - 0.75 : end - x;
  context.globalAlpha = alpha;
  context.fillStyle = colourOf(category, theme);
  context.fillRect(x, 1, width, height - 2);
  const pattern = estimated || isGap(category) ? patternOf(context, "hatched", theme.text) : null;
  if (pattern && width > 2) {
    context.fillStyle = pattern;
    context.fillRect(x, 1, width, height - 2);
  }
  context.globalAlpha = 1;
}

function sliceText(patch: Patch, { lane }: PatchLane, index: number): string {
  const count = lane.count[index] ?? 1;
  const name = (lane.kind === "stream" ? patch.shortNames : patch.names)[lane.label[index]!] ?? "";
  return count > 1 ? `${count} × ${name}` : name;
}

function write(context: CanvasRenderingContext2D, text: string, [x, end]: Range, category: number, style: LaneStyle): void {
  const left = Math.max(x, 0), right = Math.min(end, style.width);
  const short = fitted(context, text, right - left - 6, fontSize);
  if (short === "") return;
  context.fillStyle = category === noStage ? style.theme.surface : textOn(parseColour(colourOf(category, style.theme)));
  context.fillText(short, left + 3, style.height / 2 + 0.5);
}

function outline(context: CanvasRenderingContext2D, lane: string, { selected, window, width, height, theme }: LaneStyle): void {
  if (!selected || selected.lane !== lane) return;
  const { begin, end } = selected.patch.lanes.get(lane)!;
  const perNs = width / (window[1] - window[0]);
  const [x, right] = [(begin[selected.index]! - window[0]) * perNs, (end[selected.index]! - window[0]) * perNs];
  context.strokeStyle = theme.text;
  context.lineWidth = 2;
  context.strokeRect(Math.max(x, -4), 1, Math.max(Math.min(right, width + 4) - Math.max(x, -4), 2), height - 2);
}

// Readings over time below the lanes: the band from the lowest to the highest of each pixel.
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
export const readingAt = (curve: Curve, from: number, time: number): number => firstAbove(curve.ts, time - from) - 1;

export interface CurveStyle { window: Range; width: number; height: number; theme: Theme; extent: Range }

export function drawCurve(context: CanvasRenderingContext2D, parts: Segment[], key: string, style: CurveStyle): void {
  for (const part of parts) {
    const curve = curveOf(part.patch, key);
    if (curve && curve.ts.length > 0) drawReadings(context, part, curve, style);
  }
}

function drawReadings(context: CanvasRenderingContext2D, { from, to, patch }: Segment, curve: Curve, style: CurveStyle): void {
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
