import { bytesText, countText, plural, shareText, timeText } from "../format";
import { ShareBar } from "../parts/bar";
import { Name, shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";

const functions: Column<Row>[] = [
  { title: "Function", value: (row) => row["name"], show: (row) => <Name text={row["name"]} /> },
  { title: "Stage", value: (row) => row["stage"] },
  { title: "Kind", value: (row) => row["kind"] },
  { title: "Self", value: (row) => row["self_ns"], show: (row) => timeText(row["self_ns"]), number: true, hint: "CPU time in it" },
  { title: "Share", value: (row) => row["self_share"], show: (row) => <><ShareBar share={row["self_share"]} />{shareText(row["self_share"])}</>, number: true,
    hint: "of the CPU time sampled in the stage" },
  { title: "Total", value: (row) => row["total_ns"], show: (row) => timeText(row["total_ns"]), number: true, hint: "with what it called" },
  { title: "Samples", value: (row) => row["samples"], show: (row) => countText(row["samples"]), number: true },
  { title: "File", value: (row) => row["file"], show: (row) => <Name text={row["file"] ?? ""} /> },
];

const processes: Column<Row>[] = [
  { title: "Process", value: (row) => row["arguments"] ?? row["name"], show: (row) => <Name text={row["arguments"] ?? row["name"]} /> },
  { title: "Wall", value: (row) => row["wall_ns"], show: (row) => timeText(row["wall_ns"]), number: true },
  { title: "User", value: (row) => row["user_ns"], show: (row) => timeText(row["user_ns"]), number: true },
  { title: "System", value: (row) => row["system_ns"], show: (row) => timeText(row["system_ns"]), number: true },
  { title: "Cores", value: (row) => row["core_share"], show: (row) => shareText(row["core_share"]), number: true, hint: "CPU time of one core over its wall time" },
  { title: "Peak RSS", value: (row) => row["peak_rss_bytes"], show: (row) => bytesText(row["peak_rss_bytes"]), number: true },
  { title: "Threads", value: (row) => row["most_threads"], show: (row) => countText(row["most_threads"]), number: true },
];

export function Functions({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["functions"]), stacks: Row = report["stacks"] ?? {}, running = list(report["host"]?.["processes"]);
  const lead = rows.length ? `${plural(stacks["samples"] ?? 0, "CPU sample")} that stand for ${timeText(stacks["sampled_ns"])}; most self time first.` : undefined;
  return (
    <Section id="functions" title="Host functions" lead={lead}>
      {rows.length ? <Table caption="Host functions" columns={functions} rows={rows} filter="Filter" />
                   : <Empty>No CPU stacks: {shown(stacks["why"] ?? "they were not sampled")}.</Empty>}
      <h3>Processes</h3>
      {running.length ? <Table caption="Processes" columns={processes} rows={running} first={8} /> : <Empty>No process was read: {shown(report["host"]?.["why"] ?? "not recorded")}.</Empty>}
    </Section>
  );
}
