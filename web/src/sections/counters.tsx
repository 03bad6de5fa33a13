// What hardware counters say of stages and kernels: the tables of `llmprof report --counters`.
import { list, type Row, type View } from "../data";
import { DescribedTable, type Own } from "../described";
import { Empty, Section, shown } from "../parts";
import type { Description } from "../table";
import { bandwidthText, countText, measureText, plural, shareText, timeText } from "../text";

// Every value of stages, ranges or kernels, a row each. `of`: whose.
export function valueRows(rows: Row[], of: string): Row[] {
  return rows.flatMap((row) => list(row["values"]).map((value) => ({ ...value, of: row[of], time_ns: row["time_ns"] })));
}

const valueText = (row: Row, key = "value"): string => measureText(row[key], String(row["unit"] ?? ""));

// "2.1 TB/s ± 3.4 %"; an error that is not known is not none.
export const withError = (row: Row): string =>
  `${valueText(row)} ± ${typeof row["error"] === "number" ? shareText(row["error"]) : "?"}`;

export const reasonsText = (row: Row): string =>
  list(row["reasons"]).slice(0, 4).map(({ reason, share }) => `${reason} ${shareText(share)}`).join(", ");

// Places of all kernels, most samples first.
export const placeRows = (stalls: Row[]): Row[] =>
  stalls.flatMap((kernel) => list(kernel["places"])).sort((one, other) => (other["samples"] ?? 0) - (one["samples"] ?? 0));

// The three reasons for which most warps wait.
function stalledText(row: Row): string {
  const reasons = Object.entries((row["stalled_warps"] ?? {}) as Record<string, number>);
  return reasons.sort((one, other) => other[1] - one[1]).slice(0, 3).map(([reason, warps]) => `${reason} ${warps.toPrecision(2)}`).join(", ");
}

const name = (title: string) => ({ title, format: "name" });
const sentence = (title: string) => ({ title, format: "sentence" });
const measured: Own = { measured: { title: "measured", show: (row) => `${countText(row["measured"])} of ${countText(row["steps"])}` } };
const evidence: Own = { explanation: sentence("where they differ") };
const values: Own = { of: name("of"), counter: name("counter"), value: "value", spread: "spread %", occurrences: "measured",
                      method: "method", denominator: sentence("of what") };
const unmixed: Own = { of: name("kernel"), time_ns: "in samples", counter: name("counter"),
                       value: { title: "while it runs", format: "measure", show: withError } };
const stalls: Own = { reasons: { title: "its warps waited for", format: "text", show: reasonsText } };
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
  const hardware: Row = report["hardware_counters"];
  const notes: unknown[] = Array.isArray(hardware["notes"]) ? hardware["notes"] : [];
  const part = (title: string, path: string, own: Own = {}, rows?: Row[], more: Partial<Description> = {}) =>
    <DescribedTable report={report} path={`hardware_counters.${path}`} also={[`hardware_counters.${path.replace(/#.*/, "")}`]} title={title}
                    own={own} {...(rows ? { rows } : {})} {...more} />;
  const counted = [...valueRows(list(hardware["stages"]), "stage"), ...valueRows(list(hardware["ranges"]), "name")];
  return (
    <>
      <p>{measuredText(report)}.</p>
      {notes.length > 0 && <ul>{notes.map((note, at) => <li key={at}>{shown(note)}</li>)}</ul>}
      {part("Bytes of stages, counted", "stages[]#memory", measured)}
      {part("FLOPs of stages, counted", "stages[]#arithmetic")}
      {part("The same quantities from three places", "evidence[]#table", evidence)}
      {part("Ranges of the program", "ranges[]#table")}
      {part("Every counter", "stages[].values[]", values, counted, { rows_shown: 8 })}
      {part("Kernels in samples of the device", "unmixed[]", unmixed, valueRows(list(hardware["unmixed"]), "name"))}
      {hardware["unmixed_why"] && <p class="empty">Samples could not be attributed to kernels: {shown(hardware["unmixed_why"])}.</p>}
      {part("Occupancy, achieved and possible", "occupancy[]")}
      {part("What warps waited for", "stalls[]#table", stalls)}
      {part("Where they waited", "stalls[].places[]#table", {}, placeRows(list(hardware["stalls"])))}
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
