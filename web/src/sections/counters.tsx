// What hardware counters say of stages and kernels: the tables of `llmprof report --counters`.
import { list, type Row, type View } from "../data";
import { DescribedTable, type Own } from "../described";
import { Empty, Section, shown } from "../parts";
import type { Description } from "../table";
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

const percent = (title: string, meaning: string) => ({ title, format: "percent", meaning });
const measure = (title: string) => ({ title, format: "measure" });
const name = (title: string) => ({ title, format: "name" });
const sentence = (title: string) => ({ title, format: "sentence" });
const bytesOfStages: Own = {
  stage: "stage", measured: { title: "measured", show: (row) => `${countText(row["measured"])} of ${countText(row["steps"])}` },
  time_ns: "time of a step", dram_bytes: "DRAM of a step", dram_bytes_per_s: "GB/s",
  of_bandwidth: percent("bandwidth %", "Bytes counted / time, of the device's peak bandwidth."),
  must_move: { title: "must move", format: "bytes", meaning: "By the model's formulas." },
  redundancy: { title: "factor", show: ({ redundancy }) => (typeof redundancy === "number" ? `${redundancy.toFixed(2)} x` : unknown) },
  l2_hits: percent("L2 hit %", "Of sectors asked of the L2 cache."),
  spread: percent("spread %", "Standard deviation over the measured steps, of the counter that scattered most."),
};
const workOfStages: Own = {
  stage: "stage", flops: "FLOPs of a step", hfu: "HFU %", mfu: percent("MFU %", "FLOPs of the model / time, of the peak of its type."),
  tensor: percent("tensor %", "Cycles in which tensor cores worked, of all."),
  occupancy: percent("occupancy %", "Warps that were resident, of those that fit."), dram_intensity: "FLOP/B", bound: "bound", of_roof: "roof %",
};
const evidence: Own = {
  stage: "one step of", quantity: "quantity", analytic: measure("analytic"), shapes: measure("shapes"), counted: measure("counted"),
  ratio: { title: "counted of analytic", format: "measure", show: ratioText }, explanation: sentence("where they differ"),
};
const values: Own = { of: name("of"), counter: name("counter"), value: measure("value"), spread: "spread %", occurrences: "measured",
                      method: "method", denominator: sentence("of what") };
const unmixed: Own = { of: name("kernel"), time_ns: "in samples", counter: name("counter"), value: { ...measure("while it runs"), show: withError } };
const stalls: Own = { kernel: "kernel", samples: "samples", share: "share %",
                      reasons: { title: "its warps waited for", format: "text", show: reasonsText } };
const places: Own = { kernel: name("kernel"), place: { ...name("place"), meaning: "+0x…: bytes from its begin." }, reason: "reason",
                      samples: "samples", share: "share %" };
const use: Own = { stalled_warps: { title: "most stalls", format: "text", show: stalledText } };

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
  const hardware: Row = report["hardware_counters"], stages = stageRows(report);
  const notes: unknown[] = Array.isArray(hardware["notes"]) ? hardware["notes"] : [];
  const part = (title: string, path: string, own: Own, rows = list(hardware[path.replace("[]", "")]), more: Partial<Description> = {}) =>
    <DescribedTable report={report} path={`hardware_counters.${path}`} also={[`hardware_counters.${path}.work`]} title={title} own={own}
                    rows={rows} {...more} />;
  const counted = [...valueRows(list(hardware["stages"]), "stage"), ...valueRows(list(hardware["ranges"]), "name")];
  return (
    <>
      <p>{measuredText(report)}.</p>
      {notes.length > 0 && <ul>{notes.map((note, at) => <li key={at}>{shown(note)}</li>)}</ul>}
      {part("Bytes of stages, counted", "stages[]", bytesOfStages, stages)}
      {part("FLOPs of stages, counted", "stages[]", workOfStages, stages)}
      {part("The same quantities from three places", "evidence[]", evidence)}
      {part("Every counter", "stages[].values[]", values, counted, { rows_shown: 8 })}
      {part("Kernels told apart in samples", "unmixed[]", unmixed, valueRows(list(hardware["unmixed"]), "name"))}
      {hardware["unmixed_why"] && <p class="empty">Kernels are not told apart: {shown(hardware["unmixed_why"])}.</p>}
      {part("Occupancy, achieved and possible", "occupancy[]", {})}
      {part("What warps waited for", "stalls[]", stalls)}
      {part("Where they waited", "stalls[].places[]", places, placeRows(list(hardware["stalls"])).map((row) => ({ ...row, place: placeText(row) })))}
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
      <DescribedTable report={report} path="counters[]#use" also={["counters[]"]} own={use} title="How they used the device" />
      <DescribedTable report={report} path="counters[]#access" title="How they accessed memory" />
    </Section>
  );
}
