import { bandwidthText, countText, flopsText, intensityText, shareText, timeText } from "../format";
import { Name } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";

const stalls = (row: Row): string =>
  Object.entries((row["stalled_warps"] ?? {}) as Record<string, number>).sort((one, other) => other[1] - one[1]).slice(0, 3)
    .map(([reason, warps]) => `${reason} ${warps.toPrecision(2)}`).join(", ");
const share = (title: string, key: string, hint: string): Column<Row> => ({ title, value: (row) => row[key], show: (row) => shareText(row[key]), number: true, hint });

const columns: Column<Row>[] = [
  { title: "Kernel", value: (row) => row["name"], show: (row) => <Name text={row["name"]} /> },
  { title: "Launches", value: (row) => row["launches"], show: (row) => countText(row["launches"]), number: true },
  { title: "Time", value: (row) => row["time_ns"], show: (row) => timeText(row["time_ns"]), number: true },
  { title: "FLOP/s", value: (row) => row["flops_per_s"], show: (row) => flopsText(row["flops_per_s"]), number: true },
  { title: "DRAM", value: (row) => row["bytes_per_s"], show: (row) => bandwidthText(row["bytes_per_s"]), number: true },
  { title: "Intensity", value: (row) => row["intensity"], show: (row) => intensityText(row["intensity"]), number: true },
  { title: "Bound", value: (row) => row["bound"] },
  share("Of the roof", "of_roof", "least time at the roofs, of its time"),
  share("Occupancy", "occupancy", "warps that were resident, of those that could be"),
  share("L2 hits", "l2_hits", "of requests to the L2 cache"),
  share("Tensor pipes", "tensor_busy", "of its cycles"),
  { title: "Stalled warps", value: stalls, hint: "at each issue, by reason" },
];

export function Counters({ view }: { view: View }) {
  const rows = list(view.data.report["counters"]);
  return (
    <Section id="counters" title="Counters" lead={rows.length ? "Kernels with hardware counters, most time first; means are weighted by time." : undefined}>
      {rows.length ? <Table caption="Kernels with hardware counters" columns={columns} rows={rows} filter="Filter" />
                   : <Empty>No hardware counters in this run: llmprof advise prints the command that takes them, llmprof import reads them.</Empty>}
    </Section>
  );
}
