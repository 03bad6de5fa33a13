import { bandwidthText, bytesText, countText, flopsText, shareText, timeText } from "../format";
import { Name, shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { Value } from "../parts/unknown";
import { list, type Row, type View } from "../view";

const columns: Column<Row>[] = [
  { title: "Shape m × n × k", value: (row) => `${row["m"]} × ${row["n"]} × ${row["k"]}${row["batch"] > 1 ? `, batch ${row["batch"]}` : ""}` },
  { title: "Type", value: (row) => row["type"] },
  { title: "Stage", value: (row) => row["stage"] },
  { title: "Operators", value: (row) => row["ops"], show: (row) => <Name text={row["ops"] ?? ""} /> },
  { title: "Calls", value: (row) => row["calls"], show: (row) => countText(row["calls"]), number: true },
  { title: "Time", value: (row) => row["time_ns"], show: (row) => timeText(row["time_ns"]), number: true, hint: "of the kernels that the calls launched" },
  { title: "FLOP/s", value: (row) => row["flops_per_s"], show: (row) => <Value text={flopsText(row["flops_per_s"])} why={row["why"]} />, number: true },
  { title: "Of peak", value: (row) => row["of_peak"], show: (row) => <Value text={shareText(row["of_peak"])} why={row["why"]} />, number: true,
    hint: "of one device's peak FLOP/s of that type" },
  { title: "B/s", value: (row) => row["bytes_per_s"], show: (row) => <Value text={bandwidthText(row["bytes_per_s"])} why={row["why"]} />, number: true,
    hint: "operands and result moved once" },
  { title: "Function", value: (row) => row["function"], show: (row) => <Name text={row["function"] ?? ""} /> },
];

const attention: Column<Row>[] = [
  { title: "Queries × keys", value: (row) => `${row["queries"]} × ${row["keys"]}` },
  { title: "Batch", value: (row) => row["batch"], number: true },
  { title: "Heads (KV)", value: (row) => `${row["heads"]} (${row["kv_heads"]})` },
  { title: "Head size", value: (row) => row["head_size"], number: true },
  { title: "Type", value: (row) => row["type"] },
  { title: "Stage", value: (row) => row["stage"] },
  { title: "Calls", value: (row) => row["calls"], show: (row) => countText(row["calls"]), number: true },
  { title: "Time", value: (row) => row["time_ns"], show: (row) => timeText(row["time_ns"]), number: true },
  { title: "FLOP/s", value: (row) => row["flops_per_s"], show: (row) => <Value text={flopsText(row["flops_per_s"])} why={row["why"]} />, number: true },
  { title: "Of peak", value: (row) => row["of_peak"], show: (row) => <Value text={shareText(row["of_peak"])} why={row["why"]} />, number: true },
];

export function Gemms({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["gemms"]), shapes = list(report["attention"]);
  const device = list(report["devices"])[0];
  const cache = device?.["cache_bytes"] ? ` Operands smaller than its cache (${bytesText(device["cache_bytes"])}) may move faster than memory.` : "";
  return (
    <Section id="gemms" title="GEMM shapes" lead={rows.length && device ? `Most time first; shares are of the peak of ${shown(device["name"])}.${cache}` : undefined}>
      {rows.length ? <Table caption="Matrix products by shape" columns={columns} rows={rows} filter="Filter" />
                   : <Empty>No matrix product was seen: the program called no BLAS library that is known here, or shapes were not recorded.</Empty>}
      {shapes.length > 0 && <><h3>Attention shapes</h3><Table caption="Attention by shape" columns={attention} rows={shapes} /></>}
    </Section>
  );
}
