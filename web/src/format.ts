// Every number of the page as text: the formats of the pictures, and what is unknown. A unit is always there.
import { bytes, count, digits, inUnit, percent, rate, time } from "./pictures/units";

export const unknown = "–";
export type Maybe = number | null | undefined;

const known = (value: Maybe): value is number => typeof value === "number" && Number.isFinite(value);
const maybe = (format: (value: number) => string) => (value: Maybe) => (known(value) ? format(value) : unknown);

export const timeText = maybe((ns) => (ns !== 0 && Math.abs(ns) < 0.5 ? "< 1 ns" : time(ns)));
export const bytesText = maybe(bytes);
export const countText = maybe((value) => (Math.abs(value) < 1e6 ? grouped(value) : count(value)));
export const shareText = maybe(percent);
export const flopsText = maybe((value) => rate(value, "FLOP/s"));
export const bandwidthText = maybe((value) => rate(value, "B/s"));
export const joulesText = maybe((value) => (value !== 0 && Math.abs(value) < 0.1 ? `${digits(value * 1000)} mJ` : `${digits(value)} J`));
export const wattsText = maybe((value) => `${digits(value)} W`);
export const clockText = maybe((value) => `${digits(value)} MHz`);
export const degreesText = maybe((value) => `${digits(value)} °C`);
export const digitsText = maybe(digits);
export const intensityText = maybe((value) => `${digits(value)} FLOP/B`);

// A value in the unit that diagnosis and measures name: "1" is a fraction.
export function measureText(value: Maybe, unit: string): string {
  if (!known(value)) return unknown;
  if (unit === "1") return percent(value);
  if (unit === "J") return joulesText(value);
  if (unit === "") return countText(value);
  return inUnit(value, unit);
}

// "1.24 B parameters": billions and trillions, as models are named.
export const parametersText = maybe((value) => count(value).replace(/ G$/, " B") + " parameters");

// 12 345: thousands apart by a narrow space that does not break.
export function grouped(value: number): string {
  if (!Number.isInteger(value)) return digits(value);
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

// "2026-11-15 22:48 UTC" of an ISO time; anything else as it stands.
export function dateText(iso: unknown): string {
  const parts = typeof iso === "string" ? /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})/.exec(iso) : null;
  return parts ? `${parts[1]} ${parts[2]} UTC` : typeof iso === "string" ? iso : unknown;
}

// "1 step", "3 steps".
export const plural = (value: number, one: string, many = one + "s"): string =>
  `${countText(value)} ${value === 1 ? one : many}`;
