// What hardware counters say of stages and kernels: the tables of `llmprof report --counters`.
import { bandwidthText, countText, intensityText, type Maybe, plural, shareText, timeText, unknown } from "../format";
import { bandwidth, bytes, count, long, name, numeric, share, time, word } from "../parts/columns";
import { shown } from "../parts/name";
import { type Column, Table } from "../parts/table";
import { rate } from "../pictures/units";
import { list, type Row } from "../view";
import { evidenceText, placeRows, placeText, ratioText, reasonsText, stageRows, valueRows, valueText, withError } from "./hardware_rows";

const times = (value: Maybe): string => (typeof value === "number" ? `${value.toFixed(2)} x` : unknown);
const flopCount = (value: Maybe): string => (typeof value === "number" ? rate(value, "FLOP") : unknown);

const stageBytes: Column<Row>[] = [
  name("Stage", "stage"),
  { title: "Measured", value: (row) => row["measured"], number: true, hint: "steps whose counters were read, of those of the stage",
    show: (row) => `${countText(row["measured"])} of ${countText(row["steps"])}` },
  time("Time of a step", "time_ns"),
  bytes("DRAM of a step", "dram_bytes", { hint: "read and written, counted" }), bandwidth("DRAM rate", "dram_bytes_per_s"),
  share("Of the bandwidth", "of_bandwidth", { hint: "bytes counted / time, of the device's peak bandwidth" }),
  bytes("Must move", "must_move", { hint: "by the model's formulas" }),
  numeric("Factor", "redundancy", times, { hint: "DRAM bytes counted, of those that must move" }),
  share("L2 hits", "l2_hits", { hint: "of sectors asked of the L2 cache" }),
  share("Spread", "spread", { hint: "standard deviation over the measured steps, of the counter that scattered most" }),
];

const stageWork: Column<Row>[] = [
  name("Stage", "stage"),
  numeric("FLOPs of a step", "flops", flopCount, { hint: "counted" }),
  share("HFU", "hfu", { hint: "FLOPs counted / time of steps that were not measured, of the peak of their type" }),
  share("MFU", "mfu", { hint: "FLOPs of the model / time, of the peak of its type" }),
  share("Tensor cores", "tensor", { hint: "cycles in which they worked, of all" }),
  share("Occupancy", "occupancy", { hint: "warps that were resident, of those that fit" }),
  numeric("Intensity", "dram_intensity", intensityText, { hint: "FLOPs counted / DRAM bytes counted" }), word("Bound", "bound"),
  share("Of the roof", "of_roof", { hint: "least time at the roofs, of its time" }),
];

const evidenceColumn = (title: string, key: string, hint: string): Column<Row> =>
  ({ title, value: (row) => row[key], show: (row) => evidenceText(row, key), number: true, hint });
const evidence: Column<Row>[] = [
  name("One step of", "stage"), word("Quantity", "quantity"), evidenceColumn("Analytic", "analytic", "the model's formulas"),
  evidenceColumn("Shapes", "shapes", "of the matrix products that were seen"), evidenceColumn("Counted", "counted", "by the hardware"),
  { title: "Counted of analytic", value: (row) => ratioText(row), number: true }, long("Where they differ", "explanation"),
];

const values: Column<Row>[] = [
  name("Of", "of"), name("Counter", "counter"),
  { title: "Value", value: (row) => row["value"], show: valueText, number: true, hint: "of one step or range" },
  share("Spread", "spread", { hint: "standard deviation over what was measured, of the value" }), count("Measured", "occurrences"),
  word("Method", "method"), long("Of what", "denominator"),
];

const unmixed: Column<Row>[] = [
  name("Kernel", "of"), time("In samples", "time_ns"), name("Counter", "counter"),
  { title: "While it runs", value: (row) => row["value"], show: withError, number: true, hint: "±: the error of telling kernels apart" },
];

const occupancy: Column<Row>[] = [
  name("Kernel", "kernel"), share("Achieved", "achieved", { hint: "warps that were resident, of those that fit" }),
  share("Possible", "theoretical", { hint: "as the launch allows, of those that fit" }), word("Limited by", "limiter"),
];

const stalls: Column<Row>[] = [
  name("Kernel", "kernel"), count("Samples", "samples"), share("Share", "share", { hint: "of all samples" }),
  { title: "Its warps waited for", value: reasonsText, show: (row) => shown(reasonsText(row)), hint: "of the kernel's samples" },
];
const places: Column<Row>[] = [
  name("Kernel", "kernel"),
  { title: "Place", value: placeText, show: (row) => <code>{shown(placeText(row))}</code>, hint: "+0x…: bytes from its begin" },
  word("Reason", "reason"), count("Samples", "samples"), share("Share", "share", { hint: "of the kernel's samples" }),
];

// How it was measured, in sentences; what was not, and why.
export function measuredText(report: Row): string {
  const hardware: Row = report["hardware_counters"] ?? {}, parts: string[] = [];
  const add = (key: string, text: (value: string) => string) => hardware[key] && parts.push(text(shown(hardware[key])));
  add("method", (method) => `method ${method}`);
  add("set", (set) => `set ${set}`);
  add("chip", (chip) => `chip ${chip}`);
  if (hardware["windows"] > 0) parts.push(`${plural(hardware["windows"], "window")} read`);
  if (hardware["samples"] > 0) parts.push(`${plural(hardware["samples"], "sample")}, one every ${timeText(hardware["period_ns"])}`);
  if (hardware["cost_ns"] > 0) parts.push(`reading took ${timeText(hardware["cost_ns"])} from the program`);
  if (hardware["stall_samples"] > 0) {
    const unknownShare = (hardware["stall_unknown"] ?? 0) / hardware["stall_samples"];
    parts.push(`warps were looked at ${countText(hardware["stall_samples"])} times, ${shareText(unknownShare)} of it in code that is not known`);
  }
  const peak = list(report["devices"])[0]?.["peak_bandwidth"];
  if (typeof peak === "number" && list(hardware["stages"]).length) parts.push(`bandwidth is of the device's ${bandwidthText(peak)}`);
  return parts.join("; ");
}

interface PartProps { title: string; columns: Column<Row>[]; rows: Row[]; first?: number }
function Part({ title, columns, rows, first = 15 }: PartProps) {
  if (rows.length === 0) return null;
  return <><h3>{title}</h3><Table caption={title} columns={columns} rows={rows} first={first} filter="Filter" /></>;
}

export function Hardware({ report }: { report: Row }) {
  const hardware: Row | null = report["hardware_counters"] ?? null;
  if (!hardware) return null;
  const notes: unknown[] = Array.isArray(hardware["notes"]) ? hardware["notes"] : [];
  return (
    <>
      <p>{measuredText(report)}.</p>
      {notes.length > 0 && <ul>{notes.map((note, at) => <li key={at}>{shown(note)}</li>)}</ul>}
      <Part title="Bytes of stages, counted" columns={stageBytes} rows={stageRows(report)} />
      <Part title="FLOPs of stages, counted" columns={stageWork} rows={stageRows(report)} />
      <Part title="The same quantities from three places" columns={evidence} rows={list(hardware["evidence"])} />
      <Part title="Every counter" columns={values} first={8}
            rows={[...valueRows(list(hardware["stages"]), "stage"), ...valueRows(list(hardware["ranges"]), "name")]} />
      <Part title="Kernels told apart in samples" columns={unmixed} rows={valueRows(list(hardware["unmixed"]), "name")} />
      {hardware["unmixed_why"] && <p class="empty">Kernels are not told apart: {shown(hardware["unmixed_why"])}.</p>}
      <Part title="Occupancy, achieved and possible" columns={occupancy} rows={list(hardware["occupancy"])} />
      <Part title="What warps waited for" columns={stalls} rows={list(hardware["stalls"])} />
      <Part title="Where they waited" columns={places} rows={placeRows(list(hardware["stalls"]))} />
    </>
  );
}
