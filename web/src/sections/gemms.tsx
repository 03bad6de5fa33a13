import { bytesText } from "../format";
import { bandwidth, count, flops, name, numeric, share, time, word } from "../parts/columns";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";

const shape = (row: Row): string =>
  `${row["m"]} × ${row["n"]} × ${row["k"]}${row["batch"] > 1 ? `, batch ${row["batch"]}` : ""}`;

const products: Column<Row>[] = [
  { title: "Shape m × n × k", value: shape, show: (row) => <span class="word">{shown(shape(row))}</span> },
  word("Type", "type"), word("Stage", "stage"), name("Operators", "ops"), count("Calls", "calls"),
  time("Time", "time_ns", { hint: "of the kernels that the calls launched" }),
  flops("FLOP/s", "flops_per_s", { why: "why" }),
  share("Of peak", "of_peak", { why: "why", hint: "of one device's peak FLOP/s of that type" }),
  bandwidth("B/s", "bytes_per_s", { why: "why", hint: "operands and result moved once" }),
  name("Function", "function"),
];

const plain = (title: string, key: string) => numeric(title, key, (value) => String(value ?? "–"));
const attention: Column<Row>[] = [
  { title: "Queries × keys", value: (row) => `${row["queries"]} × ${row["keys"]}` },
  plain("Batch", "batch"), plain("Heads", "heads"), plain("KV heads", "kv_heads"), plain("Head size", "head_size"),
  word("Type", "type"), word("Stage", "stage"), count("Calls", "calls"), time("Time", "time_ns"),
  flops("FLOP/s", "flops_per_s", { why: "why" }), share("Of peak", "of_peak", { why: "why" }),
];

export function Gemms({ view }: { view: View }) {
  const report = view.data.report, rows = list(report["gemms"]), shapes = list(report["attention"]);
  return (
    <Section id="gemms" title="GEMM shapes" lead={rows.length ? lead(list(report["devices"])[0]) : undefined}>
      {rows.length
        ? <Table caption="Matrix products by shape" columns={products} rows={rows} filter="Filter" />
        : <Empty>No matrix product was seen: no BLAS library that is known here was called, or shapes were not recorded.</Empty>}
      {shapes.length > 0 && <h3>Attention shapes</h3>}
      {shapes.length > 0 && <Table caption="Attention by shape" columns={attention} rows={shapes} />}
    </Section>
  );
}

function lead(device: Row | undefined): string {
  if (!device) return "Most time first.";
  const cache = device["cache_bytes"] ? ` What fits its cache of ${bytesText(device["cache_bytes"])} may move faster than memory.` : "";
  return `Most time first; shares are of the peak of ${shown(device["name"])}.${cache}`;
}
