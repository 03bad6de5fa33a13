import { countText, flopsText, shareText, timeText } from "../format";
import { ShareBar } from "../parts/bar";
import { Name } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, onGpu, type Row, type View } from "../view";

const time = (title: string, key: string, hint?: string): Column<Row> =>
  ({ title, value: (row) => row[key], show: (row) => timeText(row[key]), number: true, ...(hint ? { hint } : {}) });
const count = (title: string, key: string): Column<Row> => ({ title, value: (row) => row[key], show: (row) => countText(row[key]), number: true });
const name = (title: string, key: string): Column<Row> => ({ title, value: (row) => row[key], show: (row) => <Name text={row[key] ?? ""} /> });

const columns: Column<Row>[] = [
  name("Kernel", "name"),
  { title: "Stage", value: (row) => row["stage"] },
  count("Executions", "executions"),
  time("Time", "time_ns"),
  { title: "Share", value: (row) => row["share"], show: (row) => <><ShareBar share={row["share"]} />{shareText(row["share"])}</>, number: true,
    hint: "of the time of all GPU kernels" },
  { title: "Estimated", value: (row) => row["estimated_ns"], show: (row) => (row["estimated_ns"] ? timeText(row["estimated_ns"]) : ""), number: true,
    hint: "of its time: in graph launches that were not recorded node by node" },
  { title: "FLOP/s", value: (row) => row["flops_per_s"], show: (row) => (row["flops_per_s"] ? flopsText(row["flops_per_s"]) : ""), number: true,
    hint: "of the matrix products that it stands for" },
  name("Operators", "ops"),
];

const operators: Column<Row>[] = [
  name("Operator", "name"), count("Calls", "calls"), time("On the device", "device_ns", "kernels and copies launched in it"),
  time("Self", "self_device_ns", "of those launched in no operator inside"), time("On the host", "host_ns"), count("Launches", "launches"),
];

const totals: Column<Row>[] = [
  name("Name", "name"), { title: "Kind", value: (row) => row["kind"] }, count("Calls", "calls"),
  time("On the device", "device_ns"), time("Self", "self_device_ns"), time("On the host", "host_ns"),
];

export function Kernels({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["kernels"]);
  const ops = list(report["framework_operators"]), sums = list(report["totals"]);
  return (
    <Section id="kernels" title="Kernels" lead={rows.length ? "Kernels of GPUs, most time first." : undefined}>
      {rows.length ? <Table caption="Kernels" columns={columns} rows={rows} filter="Filter" /> : <Empty>{why(view)}</Empty>}
      {ops.length > 0 && <><h3>Operators of the framework</h3><Table caption="Operators of the framework" columns={operators} rows={ops} filter="Filter" /></>}
      {sums.length > 0 && <><h3>Totals as the other tool added them up</h3><Table caption="Totals of another tool" columns={totals} rows={sums} filter="Filter" /></>}
    </Section>
  );
}

const why = (view: View): string =>
  onGpu(view.data.report) ? "No kernel of the GPU was recorded." : "No GPU executed anything; what the CPU computed is in GEMM shapes and host functions.";
