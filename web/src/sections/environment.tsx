import { bandwidthText, bytesText, flopsText } from "../format";
import { Name, shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { list, type Row, type View } from "../view";

const devices: Column<Row>[] = [
  { title: "Device", value: (row) => row["name"] },
  { title: "Chip", value: (row) => row["chip"] },
  { title: "Driver", value: (row) => row["driver"] },
  { title: "Memory", value: (row) => row["memory_bytes"], show: (row) => bytesText(row["memory_bytes"]), number: true },
  { title: "Type", value: (row) => row["type"] },
  { title: "Peak FLOP/s", value: (row) => row["peak_flops"], show: (row) => flopsText(row["peak_flops"]), number: true },
  { title: "How", value: (row) => [row["peak_flops_source"], row["peak_flops_method"]].filter(Boolean).join(": ") },
  { title: "Peak bandwidth", value: (row) => row["peak_bandwidth"], show: (row) => bandwidthText(row["peak_bandwidth"]), number: true },
  { title: "How ", value: (row) => [row["peak_bandwidth_source"], row["peak_bandwidth_method"]].filter(Boolean).join(": ") },
];

const facts: Column<[string, string]>[] = [
  { title: "Name", value: (row) => row[0], show: (row) => <Name text={row[0]} /> },
  { title: "Value", value: (row) => row[1], show: (row) => <span class="long">{shown(row[1])}</span> },
];

// {"cpu": {"name": "X"}} as ["cpu.name", "X"]; what is null is left out.
export function flat(value: unknown, path = ""): [string, string][] {
  if (value === null || value === undefined) return [];
  if (typeof value !== "object") return [[path, typeof value === "number" && /(^|[._])bytes$/.test(path) ? bytesText(value) : String(value)]];
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.length ? [[path, value.join(", ")]] : [];
  return Object.entries(value as Row).flatMap(([key, inner]) => flat(inner, path ? `${path}.${key}` : key));
}

export function Environment({ view }: { view: View }) {
  const report = view.data.report, all = list(report["devices"]), card = flat(report["environment"]), model = flat(report["model"]?.["config"]);
  return (
    <Section id="environment" title="Environment">
      {all.length ? <Table caption="Devices and their peaks" columns={devices} rows={all} /> : <Empty>No device is known.</Empty>}
      <h3>Machine</h3>
      {card.length ? <Table caption="Machine" columns={facts} rows={card} first={12} filter="Filter" /> : <Empty>The recording machine is not known: the run was imported.</Empty>}
      <h3>Model</h3>
      {model.length ? <Table caption="Model" columns={facts} rows={model} first={12} /> : <Empty>The model is not known: {shown(report["model"]?.["why"] ?? "nobody declared it")}.</Empty>}
    </Section>
  );
}
