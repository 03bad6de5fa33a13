// The roofs of a device and how far below them a point is.
import type { Roofline } from "../data";
import { percent, rate } from "../text";
import type { Range } from "./drawing";

export type Roof = Roofline["roofs"][number];
export type Point = Roofline["points"][number];

export const flopRoofs = ({ roofs }: Roofline): Roof[] => roofs.filter((roof) => roof.flops_per_s !== null && roof.flops_per_s > 0);
export const byteRoofs = ({ roofs }: Roofline): Roof[] => roofs.filter((roof) => roof.bytes_per_s !== null && roof.bytes_per_s > 0);

// Types that reach as much share a line: their names are joined.
export function ceilings(roofline: Roofline): { roofs: Roof[]; flops: number }[] {
  const lines: { roofs: Roof[]; flops: number }[] = [];
  for (const roof of flopRoofs(roofline)) {
    const line = lines.find(({ flops }) => Math.abs(roof.flops_per_s! / flops - 1) < 0.03);
    if (line) line.roofs.push(roof);
    else lines.push({ roofs: [roof], flops: roof.flops_per_s! });
  }
  return lines;
}

// The roof of memory: the lowest bandwidth, caches are faster.
export function memoryRoof(roofline: Roofline): Roof | null {
  return byteRoofs(roofline).reduce<Roof | null>((least, roof) => (!least || roof.bytes_per_s! < least.bytes_per_s! ? roof : least), null);
}

// Where the bytes of a point moved, in the words of a reader; "" of bytes that must move.
export type Level = "dram" | "l2" | "l1";
export const levelNames: Record<Level, string> = { dram: "DRAM", l2: "L2", l1: "L1" };
export const levelOf = (point: Point): Level | null => (point.source === "counters" ? point.level ?? "dram" : null);
export const sourceText = (point: Point): string => {
  const level = levelOf(point);
  return level ? `counted, bytes of ${levelNames[level]}` : point.source;
};

// The bandwidth that bounds a point: that of the level whose bytes it has. Of caches it may not be known.
export function bandwidthRoof(roofline: Roofline, point: Point): Roof | null {
  const level = levelOf(point);
  if (level === "l1") return null;
  return level === "l2" ? byteRoofs(roofline).find((roof) => roof.name === "L2 bandwidth") ?? null : memoryRoof(roofline);
}

// What a point is held against: the wanted type, or the lowest roof that no point reaches through.
export function chooseRoof(roofline: Roofline, wanted: string | null): Roof | null {
  const roofs = flopRoofs(roofline).sort((a, b) => a.flops_per_s! - b.flops_per_s!);
  const highest = Math.max(0, ...roofline.points.map((point) => point.flops_per_s));
  const enough = roofs.find((roof) => roof.flops_per_s! >= highest) ?? roofs[roofs.length - 1] ?? null;
  return roofs.find((roof) => roof.name === wanted) ?? enough;
}

// FLOP/s that a kernel of this intensity could reach.
export function attainable(intensity: number, roof: Roof | null, memory: Roof | null): number {
  return Math.min(roof?.flops_per_s ?? Infinity, memory ? intensity * memory.bytes_per_s! : Infinity);
}

export const ridge = (roof: Roof, memory: Roof): number => roof.flops_per_s! / memory.bytes_per_s!;

// "37 % of what memory bandwidth allows at 1.2 FLOP/B (5.8 TFLOP/s)"
export function distance(point: Point, roof: Roof | null, memory: Roof | null): string {
  const limit = attainable(point.intensity, roof, memory);
  if (!Number.isFinite(limit)) return "no roof is known";
  const bound = memory && limit < (roof?.flops_per_s ?? Infinity) ? memory : roof!;
  return `${percent(point.flops_per_s / limit)} of what ${bound.name} allows there (${rate(limit, "FLOP/s")})`;
}

// Both axes: all points and ridges, with room around them.
export function extents(roofline: Roofline): { x: Range; y: Range } {
  const memory = memoryRoof(roofline);
  const xs = roofline.points.map((point) => point.intensity), ys = roofline.points.map((point) => point.flops_per_s);
  for (const roof of flopRoofs(roofline)) {
    ys.push(roof.flops_per_s!);
    if (memory) xs.push(ridge(roof, memory));
  }
  const [left, right] = range(xs), [bottom, top] = range(ys);
  return { x: [left / 3, right * 4], y: [bottom / 3, top * 2] };
}

function range(values: number[]): Range {
  const usable = values.filter((value) => value > 0 && Number.isFinite(value));
  return usable.length === 0 ? [1, 10] : [Math.min(...usable), Math.max(...usable)];
}
