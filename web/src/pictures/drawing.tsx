// Values to pixels and back, and the round values to write at an axis.


export interface Scale { toPixel(value: number): number; toValue(pixel: number): number }
export type Range = [number, number];

export function linearScale([from, to]: Range, [first, last]: Range): Scale {
  const perValue = to === from ? 0 : (last - first) / (to - from);
  return {
    toPixel: (value) => first + (value - from) * perValue,
    toValue: (pixel) => (perValue === 0 ? from : from + (pixel - first) / perValue),
  };
}

// Of positive values.
export function logScale([from, to]: Range, pixels: Range): Scale {
  const linear = linearScale([Math.log10(from), Math.log10(to)], pixels);
  return {
    toPixel: (value) => linear.toPixel(Math.log10(value)),
    toValue: (pixel) => 10 ** linear.toValue(pixel),
  };
}

// The least of 1, 2, 5 times a power of ten that is not below `least`.
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// Multiples of a round step inside [from, to], about `most` of them at most.
export function roundValues([from, to]: Range, most: number): number[] {
  if (!(to > from) || most < 1) return [];
  const step = roundStep((to - from) / most);
  const values: number[] = [];
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-9; ++index) values.push(index * step || 0);
  return values;
}

// Powers of ten inside [from, to].
export function powersOfTen([from, to]: Range): number[] {
  const values: number[] = [];
  for (let power = Math.ceil(Math.log10(from) - 1e-9); power <= Math.log10(to) + 1e-9; ++power) values.push(10 ** power);
  return values;
}

// First index whose value is above `limit`; the values rise.
export function firstAbove(values: ArrayLike<number>, limit: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

export const toggled = <T,>(set: ReadonlySet<T>, key: T): Set<T> => {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
};

export function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}

// Colours that people with any kind of colour vision can tell apart: after Okabe and Ito, lightness ordered so that
// neighbours differ also in grey. Meaning never rests on colour alone; shapes, hatching and text say the same.

// Set by pictures.css for light and dark; here only their names.
export const categoryCount = 8;
export const categoryVariable = (index: number): string => `--p-cat-${index % categoryCount}`;

// Known stages keep their colour in all pictures and all runs.
const stageOrder = ["prefill", "decode", "mixed", "forward", "backward", "optimizer", "load", "warm-up"];

const assigned = new Map<string, number>();

// Of a run that is shown: stages that are not among the known ones get colours that no other has, as long as there are.
export function assignStages(stages: string[]): void {
  for (const stage of stages) {
    if (stageOrder.includes(stage) || assigned.has(stage)) continue;
    const taken = new Set([...stages.map((each) => stageOrder.indexOf(each)), ...assigned.values()]);
    const free = Array.from({ length: categoryCount }, (_, category) => category).find((category) => !taken.has(category));
    assigned.set(stage, free ?? hash(stage) % categoryCount);
  }
}

export function stageCategory(stage: string): number {
  const known = stageOrder.indexOf(stage);
  return known >= 0 ? known : assigned.get(stage) ?? hash(stage) % categoryCount;
}

// FNV-1a: the same name has the same colour everywhere.
export function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; ++index) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  return value >>> 0;
}

export const nameCategory = (name: string): number => hash(name) % categoryCount;

export type Rgb = [number, number, number];

export function parseColour(text: string): Rgb {
  const short = /^#([0-9a-f])([0-9a-f])([0-9a-f])$/i.exec(text.trim());
  const long = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  const parts = short ? short.slice(1).map((digit) => digit + digit) : long ? long.slice(1) : ["80", "80", "80"];
  return parts.map((part) => parseInt(part, 16)) as Rgb;
}

export const cssColour = ([red, green, blue]: Rgb): string =>
  `#${[red, green, blue].map((part) => Math.round(part).toString(16).padStart(2, "0")).join("")}`;

export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  return [0, 1, 2].map((index) => from[index]! + (to[index]! - from[index]!) * share) as Rgb;
}

// WCAG: of sRGB, 0 … 1.
export function luminance(colour: Rgb): number {
  const [red, green, blue] = colour.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

// Black or white, whichever can be read better on it.
export function textOn(background: Rgb): string {
  return contrast(background, [0, 0, 0]) >= contrast(background, [255, 255, 255]) ? "#000000" : "#ffffff";
}

export interface Diverging { less: Rgb; none: Rgb; more: Rgb }

// Change as a share of `full` at which the colour is strongest: -1 … 0 … 1, beyond it stays there.
export function divergingColour(scale: Diverging, change: number, full: number): Rgb {
  if (!Number.isFinite(change)) return change > 0 ? scale.more : scale.less;
  const share = full > 0 ? Math.max(-1, Math.min(1, change / full)) : Math.sign(change);
  return share < 0 ? mix(scale.none, scale.less, -share) : mix(scale.none, scale.more, share);
}

// Shapes that tell kinds apart without colour.
export type Shape = "circle" | "square" | "triangle" | "diamond";

// A path around (0, 0); all shapes of a radius have about the same area.
export function shapePath(shape: Shape, radius: number): string {
  const r = radius.toFixed(2);
  switch (shape) {
    case "circle": return `M${-radius} 0a${r} ${r} 0 1 0 ${2 * radius} 0a${r} ${r} 0 1 0 ${-2 * radius} 0Z`;
    case "square": { const s = radius * 0.89; return `M${-s} ${-s}H${s}V${s}H${-s}Z`; }
    case "triangle": { const t = radius * 1.35; return `M0 ${-t}L${t * 0.87} ${t / 2}H${-t * 0.87}Z`; }
    case "diamond": { const d = radius * 1.25; return `M0 ${-d}L${d} 0L0 ${d}L${-d} 0Z`; }
  }
}

export function ShapeKey({ shape }: { shape: Shape }) {
  return <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden="true"><path d={shapePath(shape, 5)} fill="currentColor" /></svg>;
}

// Labels beside points, the heaviest first, none over another: where there is no place beside the point, further away
// with a line to it; some stay without.
export interface Anchor { x: number; y: number; radius: number; text: string }
export interface Rect { x: number; y: number; width: number; height: number }
export interface Placed extends Rect { anchor: Anchor; line: [number, number, number, number] | null }

export const labelHeight = 13;
const charWidth = 6.1, gap = 4;

export const overlap = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const within = (inner: Rect, outer: Rect): boolean =>
  inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

// Of the labels of pictures (11 pixels): measured in a browser, about elsewhere.
let ruler: CanvasRenderingContext2D | null | undefined;
export function textWidth(text: string): number {
  if (ruler === undefined) {
    ruler = typeof document === "undefined" ? null : document.createElement("canvas").getContext("2d");
    if (ruler) ruler.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  }
  return ruler ? ruler.measureText(text).width + 3 : text.length * charWidth;  // 3: of the outline
}

// Where a text that leans lies, as boxes along it. angle in degrees, as SVG turns.
export function leaning(text: string, x: number, y: number, angle: number): Rect[] {
  const [right, down] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  return Array.from({ length: Math.ceil(textWidth(text) / labelHeight) }, (_, index) => {
    const along = index * labelHeight;
    return { x: x + along * right, y: y + along * down - labelHeight, width: labelHeight, height: labelHeight };
  });
}

// Right, left, above, below of the point; then around it, further and further away.
function candidates({ x, y, radius, text }: Anchor): Rect[] {
  const width = textWidth(text), height = labelHeight, away = radius + gap;
  const near = [
    { x: x + away, y: y - height / 2, width, height }, { x: x - away - width, y: y - height / 2, width, height },
    { x: x - width / 2, y: y - away - height, width, height }, { x: x - width / 2, y: y + away, width, height },
  ];
  const far = [18, 34, 52, 72].flatMap((distance) => [-90, -45, -135, 45, 135, 90, 0, 180].map((angle) => {
    const [right, down] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
    const [toX, toY] = [x + (radius + distance) * right, y + (radius + distance) * down];
    return { x: right > 0.1 ? toX : right < -0.1 ? toX - width : toX - width / 2, y: toY - height / 2, width, height };
  }));
  return [...near, ...far];
}

// From the edge of the mark to the nearest point of the label, where they are apart.
function leader({ x, y, radius }: Anchor, box: Rect): Placed["line"] {
  const [toX, toY] = [clamp(x, box.x, box.x + box.width), clamp(y, box.y, box.y + box.height)];
  const length = Math.hypot(toX - x, toY - y);
  if (length < radius + 2 * gap) return null;
  return [x + ((toX - x) / length) * radius, y + ((toY - y) / length) * radius, toX, toY];
}

// Whether a line passes through a box, looked at every few pixels.
function crosses(line: Placed["line"], box: Rect): boolean {
  if (!line) return false;
  const [x, y, toX, toY] = line, steps = Math.ceil(Math.hypot(toX - x, toY - y) / 4);
  for (let step = 0; step <= steps; ++step) {
    const at = { x: x + ((toX - x) * step) / steps, y: y + ((toY - y) * step) / steps, width: 0.1, height: 0.1 };
    if (overlap(at, box)) return true;
  }
  return false;
}

export function placeLabels(anchors: Anchor[], area: Rect, most: number, taken: Rect[] = []): Placed[] {
  const placed: Placed[] = [];
  const marks: Rect[] = anchors.map(({ x, y, radius }) => ({ x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius }));
  for (const [index, anchor] of anchors.entries()) {
    if (placed.length >= most) break;
    // Heavier points keep clear; a label may cover lighter ones.
    const blocked = [...taken, ...placed, ...marks.slice(0, Math.max(index, most)).filter((_, other) => other !== index)];
    if (placed.some((other) => other.anchor.text === anchor.text && Math.hypot(other.anchor.x - anchor.x, other.anchor.y - anchor.y) < 40)) continue;
    const place = candidates(anchor).find((box) => within(box, area) && !blocked.some((other) => overlap(box, other)) &&
      ![...taken, ...placed].some((other) => crosses(leader(anchor, box), other)) && !placed.some(({ line }) => crosses(line, box)));
    if (place) placed.push({ ...place, anchor, line: leader(anchor, place) });
  }
  return placed;
}
