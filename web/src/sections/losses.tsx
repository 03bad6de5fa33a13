import { bytesText, countText, plural, shareText, timeText } from "../format";
import { count, long, time, word } from "../parts/columns";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";

const severities: Record<string, string> = { data_loss: "▲ data lost", degraded: "◆ degraded", info: "i info" };
const severity = (row: Row): string => severities[row["severity"]] ?? String(row["severity"]);
const losses: Column<Row>[] = [
  word("Loss", "name"),
  { title: "Severity", value: severity, show: (row) => <span class="word">{shown(severity(row))}</span> },
  { title: "Count", value: (row) => row["count"], show: (row) => `${countText(row["count"])} ${shown(row["unit"])}`, number: true },
  long("Meaning", "meaning"), long("Detail", "detail"), long("Remedy", "remedy"),
];
const gaps: Column<Row>[] = [long("Not recorded because", "why"), word("Stage", "stage"), count("Gaps", "gaps"), time("Time", "time_ns")];

export function Losses({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["losses"]), holes = list(report["gaps"]), notes = list(report["notes"]);
  return (
    <Section id="losses" title="Losses" lead="What was lost or not seen, worst first, and what recording itself cost.">
      {rows.length ? <Table caption="Losses" columns={losses} rows={rows} /> : <Empty>Nothing was lost.</Empty>}
      {holes.length > 0 && <><h3>Time that was not recorded</h3><Table caption="Time that was not recorded" columns={gaps} rows={holes} /></>}
      {notes.length > 0 && <h3>Notes</h3>}
      {notes.length > 0 && <ul>{notes.map((note, at) => <li key={at}><b>{shown(note["subject"])}:</b> {shown(note["text"])}</li>)}</ul>}
      <h3>Coverage</h3>
      <p>{coverage(report["coverage"] ?? {})}</p>
      <h3>Cost of recording</h3>
      <p>{cost(report["recording_cost"] ?? {})}</p>
    </Section>
  );
}

function coverage(row: Row): string {
  const placed = shareText(row["gpu_placed_ns"] / row["gpu_ns"]);
  const gpu = row["gpu_ns"] > 0 ? ` ${placed} of ${timeText(row["gpu_ns"])} GPU time has a stage and a kernel.` : "";
  const things = [plural(row["processes"] ?? 0, "process", "processes"), plural(row["threads"] ?? 0, "thread"),
                  plural(row["kernels"] ?? 0, "kernel"), plural(row["ranges"] ?? 0, "range"), plural(row["gemms"] ?? 0, "matrix product")];
  return `${things.join(", ")} in ${timeText(row["wall_ns"])}; ${timeText(row["in_stages_ns"])} of that in stages.${gpu}`;
}

export function cost(row: Row): string {
  if (typeof row["delay_ns"] !== "number") return `Not known${row["why"] ? `: ${shown(row["why"])}` : ", the run was not recorded by llmprof"}.`;
  const timing = typeof row["timing_ns"] === "number"
    ? ` Timing ${plural(row["timed_kernels"], "kernel")} delayed it by about ${timeText(row["timing_ns"])} more, ` +
      "if each takes what it does on an H200." : "";
  return `Events delayed threads by an estimated ${timeText(row["delay_ns"])}, ${shareText(row["delay_share"])} of the run's wall time; ` +
    `${bytesText(row["log_bytes"])} of logs, ${timeText(row["writer_cpu_ns"])} CPU time of writer threads, ` +
    `${timeText(row["recorder_cpu_ns"])} of the recorder, which a program that keeps all cores busy waits for.` +
    `${timing}${measuredCost(row["stages"] ?? [])}`;
}

/** What the run itself tells: a stage's steps with recording against those without. */
function measuredCost(stages: Row[]): string {
  return stages.filter((stage) => stage["measured"]).map((stage) => {
    const { ratio, low, high } = stage["measured"] as { ratio: number; low: number; high: number };
    const times = `${ratio.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}] times as long`;
    return low > 1 ? ` Measured: recorded, a step of ${shown(stage["name"])} is ${times} (95 % interval).`
                   : ` Measured: what recording costs a step of ${shown(stage["name"])} cannot be told from nothing (${times}, 95 % interval).`;
  }).join("");
}
