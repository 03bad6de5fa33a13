import { bar, count, flops, name, time, word } from "../parts/columns";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, onGpu, type Row, type View } from "../view";

const kernels: Column<Row>[] = [
  name("Kernel", "name"), word("Stage", "stage"), count("Executions", "executions"), time("Time", "time_ns"),
  bar("Share", "share", "of the time of all GPU kernels"),
  time("Estimated", "estimated_ns", { blank: true, hint: "of its time: in graph launches that were not recorded node by node" }),
  flops("FLOP/s", "flops_per_s", { blank: true, hint: "of the matrix products that it stands for" }),
  name("Operators", "ops"),
];

const operators: Column<Row>[] = [
  name("Operator", "name"), count("Calls", "calls"),
  time("On the device", "device_ns", { hint: "kernels and copies launched in it" }),
  time("Self", "self_device_ns", { hint: "of those launched in no operator inside" }),
  time("On the host", "host_ns"), count("Launches", "launches"),
];

const totals: Column<Row>[] = [
  name("Name", "name"), word("Kind", "kind"), count("Calls", "calls"),
  time("On the device", "device_ns"), time("Self", "self_device_ns"), time("On the host", "host_ns"),
];

export function Kernels({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["kernels"]);
  const ops = list(report["framework_operators"]), sums = list(report["totals"]);
  return (
    <Section id="kernels" title="Kernels" lead={rows.length ? "Kernels of GPUs, most time first." : undefined}>
      {rows.length ? <Table caption="Kernels" columns={kernels} rows={rows} filter="Filter" /> : <Empty>{why(view)}</Empty>}
      {ops.length > 0 && <h3>Operators of the framework</h3>}
      {ops.length > 0 && <Table caption="Operators of the framework" columns={operators} rows={ops} filter="Filter" />}
      {sums.length > 0 && <h3>Totals as the other tool added them up</h3>}
      {sums.length > 0 && <Table caption="Totals of another tool" columns={totals} rows={sums} filter="Filter" />}
    </Section>
  );
}

const why = (view: View): string => (onGpu(view.data.report)
  ? "No kernel of the GPU was recorded."
  : "No GPU executed anything; what the CPU computed is in GEMM shapes and host functions.");
