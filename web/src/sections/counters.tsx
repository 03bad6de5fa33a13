// What hardware counters say of stages and kernels: the tables of `llmprof report --counters`.
import { list, type Row, type View } from "../data";
import { DescribedTable } from "../described";
import { Empty, Section, shown } from "../parts";
import { column, type Description, TitledTable } from "../table";
import { bandwidthText, countText, type Maybe, measureText, plural, shareText, timeText, unknown } from "../text";

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

const valueText = (row: Row, key = "value"): string => measureText(row[key], String(row["unit"] ?? ""));

// "2.1 TB/s ± 3.4 %"; an error that is not known is not none.
export const withError = (row: Row): string =>
  `${valueText(row)} ± ${typeof row["error"] === "number" ? shareText(row["error"]) : "?"}`;

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

// The three reasons for which most warps wait.
function stalledText(row: Row): string {
  const reasons = Object.entries((row["stalled_warps"] ?? {}) as Record<string, number>);
  return reasons.sort((one, other) => other[1] - one[1]).slice(0, 3).map(([reason, warps]) => `${reason} ${warps.toPrecision(2)}`).join(", ");
}

const stalled = [column("text", "most stalls", "stalled_warps", "at each issue, by reason", { show: stalledText })];

const tables: Record<string, Description> = {
  bytes: { name: "stage_bytes", title: "Bytes of stages, counted", columns: [
    column("name", "Stage", "stage"),
    column("count", "Measured", "measured", "steps whose counters were read, of those of the stage",
           { show: (row) => `${countText(row["measured"])} of ${countText(row["steps"])}` }),
    column("ns", "Time of a step", "time_ns"), column("bytes", "DRAM of a step", "dram_bytes", "read and written, counted"),
    column("measure", "DRAM rate", "dram_bytes_per_s", "", { unit: "B/s" }),
    column("share", "Of the bandwidth", "of_bandwidth", "bytes counted / time, of the device's peak bandwidth"),
    column("bytes", "Must move", "must_move", "by the model's formulas"),
    column("measure", "Factor", "redundancy", "DRAM bytes counted, of those that must move",
           { show: ({ redundancy }) => (typeof redundancy === "number" ? `${redundancy.toFixed(2)} x` : unknown) }),
    column("share", "L2 hits", "l2_hits", "of sectors asked of the L2 cache"),
    column("share", "Spread", "spread", "standard deviation over the measured steps, of the counter that scattered most"),
  ] },
  work: { name: "stage_work", title: "FLOPs of stages, counted", columns: [
    column("name", "Stage", "stage"), column("measure", "FLOPs of a step", "flops", "counted", { unit: "FLOP" }),
    column("share", "HFU", "hfu", "FLOPs counted / time of steps that were not measured, of the peak of their type"),
    column("share", "MFU", "mfu", "FLOPs of the model / time, of the peak of its type"),
    column("share", "Tensor cores", "tensor", "cycles in which they worked, of all"),
    column("share", "Occupancy", "occupancy", "warps that were resident, of those that fit"),
    column("measure", "Intensity", "dram_intensity", "FLOPs counted / DRAM bytes counted", { unit: "FLOP/B" }),
    column("word", "Bound", "bound"), column("share", "Of the roof", "of_roof", "least time at the roofs, of its time"),
  ] },
  evidence: { name: "evidence", title: "The same quantities from three places", columns: [
    column("name", "One step of", "stage"), column("word", "Quantity", "quantity"),
    column("measure", "Analytic", "analytic", "the model's formulas"),
    column("measure", "Shapes", "shapes", "of the matrix products that were seen"), column("measure", "Counted", "counted", "by the hardware"),
    column("measure", "Counted of analytic", "ratio", "", { show: ratioText }), column("sentence", "Where they differ", "explanation"),
  ] },
  values: { name: "values", title: "Every counter", rows_shown: 8, columns: [
    column("name", "Of", "of"), column("name", "Counter", "counter"), column("measure", "Value", "value", "of one step or range"),
    column("share", "Spread", "spread", "standard deviation over what was measured, of the value"), column("count", "Measured", "occurrences"),
    column("word", "Method", "method"), column("sentence", "Of what", "denominator"),
  ] },
  unmixed: { name: "unmixed", title: "Kernels told apart in samples", columns: [
    column("name", "Kernel", "of"), column("ns", "In samples", "time_ns"), column("name", "Counter", "counter"),
    column("measure", "While it runs", "value", "±: the error of telling kernels apart", { show: withError }),
  ] },
  stalls: { name: "stalls", title: "What warps waited for", columns: [
    column("name", "Kernel", "kernel"), column("count", "Samples", "samples"), column("share", "Share", "share", "of all samples"),
    column("text", "Its warps waited for", "waited", "of the kernel's samples"),
  ] },
  places: { name: "places", title: "Where they waited", columns: [
    column("name", "Kernel", "kernel"), column("name", "Place", "place", "+0x…: bytes from its begin"), column("word", "Reason", "reason"),
    column("count", "Samples", "samples"), column("share", "Share", "share", "of the kernel's samples"),
  ] },
};

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

function Hardware({ report }: { report: Row }) {
  const hardware: Row = report["hardware_counters"], stages = stageRows(report), stalls = list(hardware["stalls"]);
  const notes: unknown[] = Array.isArray(hardware["notes"]) ? hardware["notes"] : [];
  const part = (name: string, rows: Row[]) => <TitledTable description={tables[name]!} rows={rows} />;
  return (
    <>
      <p>{measuredText(report)}.</p>
      {notes.length > 0 && <ul>{notes.map((note, at) => <li key={at}>{shown(note)}</li>)}</ul>}
      {part("bytes", stages)}
      {part("work", stages)}
      {part("evidence", list(hardware["evidence"]))}
      {part("values", [...valueRows(list(hardware["stages"]), "stage"), ...valueRows(list(hardware["ranges"]), "name")])}
      {part("unmixed", valueRows(list(hardware["unmixed"]), "name"))}
      {hardware["unmixed_why"] && <p class="empty">Kernels are not told apart: {shown(hardware["unmixed_why"])}.</p>}
      <DescribedTable report={report} path="hardware_counters.occupancy[]" title="Occupancy, achieved and possible" />
      {part("stalls", stalls.map((row) => ({ ...row, waited: reasonsText(row) })))}
      {part("places", placeRows(stalls).map((row) => ({ ...row, place: placeText(row) })))}
    </>
  );
}

export function Counters({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["counters"]), counted = Boolean(report["hardware_counters"]);
  const lead = "What the hardware itself counted: bytes, FLOPs, cycles, warps. It stands beside what the model says must be.";
  return (
    <Section id="counters" title="Counters" lead={rows.length || counted ? lead : undefined}>
      {!rows.length && !counted && <Empty>No hardware counters in this run: llmprof record --counters light takes them.</Empty>}
      {counted && <Hardware report={report} />}
      <DescribedTable report={report} path="counters[]#roofs" />
      <DescribedTable report={report} path="counters[]#use" also={["counters[]"]} extra={stalled} title="How they used the device" />
      <DescribedTable report={report} path="counters[]#access" title="How they accessed memory" />
    </Section>
  );
}
