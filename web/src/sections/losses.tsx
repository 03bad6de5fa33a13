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

function cost(row: Row): string {
  if (typeof row["delay_ns"] !== "number") return `Not known${row["why"] ? `: ${shown(row["why"])}` : ", the run was not recorded by llmprof"}.`;
  return `Threads were delayed by ${timeText(row["delay_ns"])}, ${shareText(row["delay_share"])} of the run's wall time; ` +
    `${bytesText(row["log_bytes"])} of logs, ${timeText(row["writer_cpu_ns"])} CPU time of writer threads, ` +
    `${timeText(row["recorder_cpu_ns"])} of the recorder.`;
}
