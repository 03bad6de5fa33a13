import { digitsText, intensityText } from "../format";
import { bandwidth, count, flops, name, numeric, share, time, word } from "../parts/columns";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";
import { Hardware } from "./hardware";

// The three reasons for which most warps wait.
function stalls(row: Row): string {
  const reasons = Object.entries((row["stalled_warps"] ?? {}) as Record<string, number>);
  return reasons.sort((one, other) => other[1] - one[1]).slice(0, 3).map(([reason, warps]) => `${reason} ${warps.toPrecision(2)}`).join(", ");
}

const columns: Column<Row>[] = [
  name("Kernel", "name"), count("Launches", "launches"), time("Time", "time_ns"), flops("FLOP/s", "flops_per_s"),
  bandwidth("DRAM", "bytes_per_s"), numeric("Intensity", "intensity", intensityText), word("Bound", "bound"),
  share("Of the roof", "of_roof", { hint: "least time at the roofs, of its time" }),
  share("Occupancy", "occupancy", { hint: "warps that were resident, of those that could be" }),
  share("L2 hits", "l2_hits", { hint: "of requests to the L2 cache" }),
  share("Tensor pipes", "tensor_busy", { hint: "busy, of its cycles" }),
  numeric("Sectors/load", "sectors_per_load", digitsText),
  share("Bank conflicts", "bank_conflicts", { hint: "of the wavefronts of shared memory" }),
  share("Local memory", "local_share", { hint: "spilled registers, of the sectors asked of L1" }),
  { title: "Stalled warps", value: stalls, hint: "at each issue, by reason" },
];

export function Counters({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["counters"]), counted = Boolean(report["hardware_counters"]);
  const lead = "What the hardware itself counted: bytes, FLOPs, cycles, warps. It stands beside what the model says must be.";
  return (
    <Section id="counters" title="Counters" lead={rows.length || counted ? lead : undefined}>
      {!rows.length && !counted && <Empty>No hardware counters in this run: llmprof record --counters light takes them.</Empty>}
      {counted && <Hardware report={report} />}
      {rows.length > 0 && <h3>Kernels, most time first; means are weighted by time</h3>}
      {rows.length > 0 && <Table caption="Kernels with hardware counters" columns={columns} rows={rows} filter="Filter" />}
    </Section>
  );
}
