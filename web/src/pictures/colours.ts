// Colours that people with any kind of colour vision can tell apart: after Okabe and Ito, lightness ordered so that
// neighbours differ also in grey. Meaning never rests on colour alone; shapes, hatching and text say the same.

// Set by pictures.css for light and dark; here only their names.
export const categoryCount = 8;
export const categoryVariable = (index: number): string => `--p-cat-${index % categoryCount}`;

// Known stages keep their colour in all pictures and all runs.
const stageOrder = ["prefill", "decode", "mixed", "forward", "backward", "optimizer", "load", "warm-up"];

export function stageCategory(stage: string): number {
  const known = stageOrder.indexOf(stage);
  return known >= 0 ? known : hash(stage) % categoryCount;
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
