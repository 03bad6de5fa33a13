// Rows of the tables of hardware counters, out of report.hardware_counters.
import { type Maybe, measureText, shareText, unknown } from "../format";
import { list, type Row } from "../view";

const number = (value: unknown): Maybe => (typeof value === "number" && Number.isFinite(value) ? value : null);

// A percentage of the catalogue as a fraction.
const fraction = (values: Row[], counter: string): Maybe => {
  const value = number(values.find((each) => each["counter"] === counter)?.["value"]);
  return typeof value === "number" ? value / 100 : null;
};

const widestSpread = (values: Row[]): Maybe =>
  values.reduce<Maybe>((most, { spread }) => (typeof spread === "number" && spread >= (most ?? 0) ? spread : most), null);

export function stageRows(report: Row): Row[] {
  const hardware: Row = report["hardware_counters"] ?? {}, peak = number(list(report["devices"])[0]?.["peak_bandwidth"]);
  return list(hardware["stages"]).map((stage) => {
    const work: Row = stage["work"] ?? {}, values = list(stage["values"]);
    const whole = list(report["stages"]).find((each) => each["name"] === stage["stage"]);
    const bytes = list(hardware["evidence"]).find((each) => each["stage"] === stage["stage"] && each["quantity"] === "bytes");
    const rate = number(work["dram_bytes_per_s"]);
    return {
      ...work, stage: stage["stage"], measured: stage["measured"], steps: stage["steps"], method: stage["method"],
      of_bandwidth: typeof rate === "number" && typeof peak === "number" && peak > 0 ? rate / peak : null,
      must_move: number(bytes?.["analytic"]), redundancy: number(stage["redundancy"]), hfu: number(stage["hfu"]), mfu: number(whole?.["mfu"]),
      tensor: fraction(values, "tensor_active_pct"), l2_hits: fraction(values, "l2_hit_pct"),
      occupancy: fraction(values, "achieved_occupancy_pct"), spread: widestSpread(values),
    };
  });
}

// Every value of stages, ranges or kernels, a row each. `of`: whose.
export function valueRows(rows: Row[], of: string): Row[] {
  return rows.flatMap((row) => list(row["values"]).map((value) => ({ ...value, of: row[of], time_ns: row["time_ns"] })));
}

export const valueText = (row: Row): string => measureText(row["value"], String(row["unit"] ?? ""));

// "2.1 TB/s ± 3.4 %"; an error that is not known is not none.
export const withError = (row: Row): string =>
  `${valueText(row)} ± ${typeof row["error"] === "number" ? shareText(row["error"]) : "?"}`;

export const evidenceText = (row: Row, key: string): string => measureText(row[key], String(row["unit"] ?? ""));

export function ratioText(row: Row): string {
  const counted = number(row["counted"]), analytic = number(row["analytic"]);
  return typeof counted === "number" && typeof analytic === "number" && analytic > 0 ? `${(counted / analytic).toFixed(3)} x` : unknown;
}

export const reasonsText = (row: Row): string =>
  list(row["reasons"]).slice(0, 4).map(({ reason, share }) => `${reason} ${shareText(share)}`).join(", ");

// Places of all kernels, most samples first.
export const placeRows = (stalls: Row[]): Row[] =>
  stalls.flatMap((kernel) => list(kernel["places"]).map((place): Row => ({ ...place, kernel: kernel["kernel"] })))
    .sort((one, other) => (other["samples"] ?? 0) - (one["samples"] ?? 0));

export function placeText(row: Row): string {
  if (row["file"]) return typeof row["line"] === "number" ? `${row["file"]}:${row["line"]}` : String(row["file"]);
  return typeof row["pc_offset"] === "number" ? `+0x${row["pc_offset"].toString(16)}` : unknown;
}
