// Every text of the page: names that may hold anything, numbers with their unit in few characters, and what is unknown.

// Text of a run as people can read it: characters that hide, turn or move others are shown by their number.
// Names come from programs and files, so they may hold anything.

const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

export function visible(text: string): string {
  return text.replace(hidden, (found) => `⟨U+${found.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

// For tips and tables: names of C++ functions may fill pages.
const longest = 200;
export const clipped = (name: string): string =>
  (name.length <= longest ? name : `${name.slice(0, longest)}… (${name.length} characters)`);

const steps = (names: string[], factor: number): [number, string][] =>
  names.map((name, index): [number, string] => [factor ** index, name]).reverse();

const timeUnits: [number, string][] = [[6e10, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const byteUnits = steps(["B", "kB", "MB", "GB", "TB"], 1000);  // decimal, as the program prints them
const countUnits = steps(["", "k", "M", "G", "T", "P"], 1000);

// Three digits that count: 1.23, 12.3, 123, 1234.
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return Math.round(value).toString();
  if (size >= 0.001) return String(Number(value.toPrecision(3)));
  return value.toExponential(2);
}

function scaled(value: number, units: [number, string][]): string {
  const size = Math.abs(value);
  const [factor, name] = units.find(([least]) => size >= least) ?? units[units.length - 1]!;
  return name === "" ? digits(value / factor) : `${digits(value / factor)} ${name}`;
}

export const time = (ns: number): string => (Math.abs(ns) < 12e10 ? scaled(ns, timeUnits.slice(1)) : scaled(ns, timeUnits));
export const bytes = (value: number): string => scaled(value, byteUnits);
export const count = (value: number): string => (Math.abs(value) < 10000 ? digits(value) : scaled(value, countUnits));

export function percent(share: number): string {
  const value = share * 100;
  if (value !== 0 && Math.abs(value) < 0.1) return value < 0 ? "> -0.1 %" : "< 0.1 %";
  return `${Math.abs(value) >= 99.95 ? Math.round(value) : Number(value.toPrecision(Math.abs(value) < 1 ? 1 : 3))} %`;
}

// "+4.2 %", "-12 %", "new", "gone".
export function change(before: number, after: number): string {
  if (before === 0) return after === 0 ? "0 %" : "new";
  if (after === 0) return "gone";
  const share = after / before - 1;
  return (share > 0 ? "+" : "") + percent(share);
}

// A value of the unit that the data name: "ns", "bytes", "FLOP/s", "W", "share", …
export function inUnit(value: number, unit: string): string {
  switch (unit) {
    case "ns": return time(value);
    case "s": return time(value * 1e9);
    case "bytes": case "B": return bytes(value);
    case "bytes/s": case "B/s": return rate(value, "B/s");
    case "FLOP/s": return rate(value, "FLOP/s");
    case "FLOP": return rate(value, "FLOP");
    case "share": case "ratio": return percent(value);
    case "%": return percent(value / 100);
    case "": return count(value);
    default: return `${digits(value)} ${visible(unit)}`;  // units of readings come from files
  }
}

// Powers of 1000: 4.8 TB/s, 989 TFLOP/s.
export function rate(value: number, unit: string): string {
  const text = scaled(value, countUnits);
  return text.includes(" ") ? text + unit : `${text} ${unit}`;
}

// A time in a run, exact to a tenth of what lies there: 8.0000012 s.
export function moment(ns: number, durationNs: number): string {
  const [factor, name] = timeUnits.slice(1).find(([least]) => Math.abs(ns) >= least) ?? [1, "ns"];
  const places = Math.ceil(Math.log10(factor / Math.max(durationNs, 1))) + 1;
  return `${(ns / factor).toFixed(Math.max(0, Math.min(places, Math.round(Math.log10(factor)))))} ${name}`;
}

// Labels of equally spaced times: one unit for all of them, as many digits as their distance needs.
export function timeLabels(values: number[]): string[] {
  if (values.length === 0) return [];
  const largest = Math.max(...values.map(Math.abs));
  const step = values.length > 1 ? values[1]! - values[0]! : largest;
  const [factor, name] = timeUnits.slice(1).find(([least]) => largest >= least) ?? [1, "ns"];
  const places = step > 0 ? Math.max(0, Math.min(9, -Math.floor(Math.log10(step / factor) + 1e-9))) : 0;
  return values.map((value) => `${(value / factor).toFixed(places)} ${name}`);
}

export const unknown = "–";
export type Maybe = number | null | undefined;

const known = (value: Maybe): value is number => typeof value === "number" && Number.isFinite(value);
const maybe = (format: (value: number) => string) => (value: Maybe) => (known(value) ? format(value) : unknown);

export const timeText = maybe((ns) => (ns !== 0 && Math.abs(ns) < 0.5 ? "< 1 ns" : time(ns)));
export const bytesText = maybe(bytes);
export const countText = maybe((value) => (Math.abs(value) < 1e6 ? grouped(value) : count(value)));
export const shareText = maybe(percent);
export const rateText = (value: Maybe, unit: string): string => (known(value) ? rate(value, unit) : unknown);
export const flopsText = (value: Maybe): string => rateText(value, "FLOP/s");
export const bandwidthText = (value: Maybe): string => rateText(value, "B/s");
export const joulesText = maybe((value) => (value !== 0 && Math.abs(value) < 0.1 ? `${digits(value * 1000)} mJ` : `${digits(value)} J`));
export const wattsText = maybe((value) => `${digits(value)} W`);

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
