import { plural, timeText } from "../format";
import { bar, bytes, count, name, share, time, word } from "../parts/columns";
import { Name, shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";

const functions: Column<Row>[] = [
  name("Function", "name"), word("Stage", "stage"), word("Kind", "kind"), time("Self", "self_ns", { hint: "CPU time in it" }),
  bar("Share", "self_share", "of the CPU time sampled in the stage"),
  time("Total", "total_ns", { hint: "with what it called" }), count("Samples", "samples"), name("File", "file"),
];

const program = (row: Row): string => row["arguments"] ?? row["name"];
const processes: Column<Row>[] = [
  { title: "Process", value: program, show: (row) => <Name text={program(row)} /> },
  time("Wall", "wall_ns"), time("User", "user_ns"), time("System", "system_ns"),
  share("Cores", "core_share", { hint: "CPU time of one core over its wall time" }),
  bytes("Peak RSS", "peak_rss_bytes"), count("Threads", "most_threads"),
];

export function Functions({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["functions"]), running = list(report["host"]?.["processes"]);
  const stacks: Row = report["stacks"] ?? {};
  const lead = `${plural(stacks["samples"] ?? 0, "CPU sample")} that stand for ${timeText(stacks["sampled_ns"])}; most self time first.`;
  return (
    <Section id="functions" title="Host functions" lead={rows.length ? lead : undefined}>
      {rows.length
        ? <Table caption="Host functions" columns={functions} rows={rows} filter="Filter" />
        : <Empty>No CPU stacks: {shown(stacks["why"] ?? "they were not sampled")}.</Empty>}
      <h3>Processes</h3>
      {running.length
        ? <Table caption="Processes" columns={processes} rows={running} first={8} />
        : <Empty>No process was read: {shown(report["host"]?.["why"] ?? "not recorded")}.</Empty>}
    </Section>
  );
}
