import { bytesText } from "../format";
import { bandwidth, bytes, flops, word } from "../parts/columns";
import { Name, shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";

const how = (title: string, key: string): Column<Row> =>
  ({ title, value: (row) => [row[`${key}_source`], row[`${key}_method`]].filter(Boolean).join(": ") });
const devices: Column<Row>[] = [
  { title: "Device", value: (row) => row["name"] }, word("Chip", "chip"), word("Driver", "driver"), bytes("Memory", "memory_bytes"),
  word("Type", "type"), flops("Peak FLOP/s", "peak_flops"), how("FLOP/s from", "peak_flops"),
  bandwidth("Peak bandwidth", "peak_bandwidth"), how("Bandwidth from", "peak_bandwidth"),
];

type Fact = [string, string];
const facts: Column<Fact>[] = [
  { title: "Name", value: (row) => row[0], show: (row) => <Name text={row[0]} /> },
  { title: "Value", value: (row) => row[1], show: (row) => <span class="value">{shown(row[1])}</span> },
];

// {"cpu": {"name": "X"}} as ["cpu.name", "X"]; what is null is left out.
export function flat(value: unknown, path = ""): Fact[] {
  if (value === null || value === undefined) return [];
  if (typeof value === "number" && /(^|[._])bytes$/.test(path)) return [[path, bytesText(value)]];
  if (typeof value !== "object") return [[path, String(value)]];
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.length ? [[path, value.join(", ")]] : [];
  return Object.entries(value as Row).flatMap(([key, inner]) => flat(inner, path ? `${path}.${key}` : key));
}

export function Environment({ view }: { view: View }) {
  const report = view.data.report, all = list(report["devices"]);
  const card = flat(report["environment"]), model = flat(report["model"]?.["config"]);
  return (
    <Section id="environment" title="Environment">
      {all.length ? <Table caption="Devices and their peaks" columns={devices} rows={all} /> : <Empty>No device is known.</Empty>}
      <h3>Machine</h3>
      {card.length
        ? <Table caption="Machine" columns={facts} rows={card} first={12} filter="Filter" />
        : <Empty>The machine is not known: the run was imported from a file that does not tell.</Empty>}
      <h3>Model</h3>
      {model.length
        ? <Table caption="Model" columns={facts} rows={model} first={12} />
        : <Empty>The model is not known: {shown(report["model"]?.["why"] ?? "nobody declared it")}.</Empty>}
    </Section>
  );
}
