import { clockText, countText, degreesText, joulesText, plural, shareText, wattsText } from "../format";
import { numeric, share, time, word } from "../parts/columns";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { TelemetryCurves } from "../pictures/telemetry_curves";
import { list, type Row, type View } from "../view";

const limits = (row: Row): string => list(row["clock_limits"]).map((each) => `${each["why"]} ${shareText(each["share"])}`).join(", ");
const energy = { why: "energy_why" }, clock = { why: "clock_why" }, active = "activity_why";

const stages: Column<Row>[] = [
  word("Stage", "stage"), time("Time", "time_ns"),
  numeric("Energy", "energy_j", joulesText, energy), numeric("J/token", "joules_per_token", joulesText, energy),
  numeric("Power", "power_w", wattsText, { ...energy, hint: "energy by time" }),
  numeric("SM clock", "sm_clock_mhz", clockText, { ...clock, hint: "mean of the readings" }),
  share("Slow clock", "slow_clock_share", { ...clock, hint: "readings with a clock well below the reference, of all in the stage" }),
  numeric("Temperature", "temperature_c", degreesText, clock),
  share("SM active", "sm_active", { why: active, hint: "of the time, mean over SMs" }),
  share("Occupancy", "sm_occupancy", { why: active, hint: "warps resident, of those that could be" }),
  share("Tensor", "tensor_active", { why: active, hint: "tensor pipes busy, of the time" }),
  share("DRAM", "dram_active", { why: active, hint: "memory interface busy, of the time" }),
  { title: "Clock held back by", value: limits },
];

const plain = (title: string, key: string) => numeric(title, key, countText);
const gauges: Column<Row>[] = [
  word("What", "what"), word("Server", "server"), word("Unit", "unit"), plain("Last", "last"), plain("Highest", "highest"),
];

export function Telemetry({ view }: { view: View }) {
  const telemetry: Row | null = view.data.report["telemetry"] ?? null, metrics: Row = view.data.report["metrics"] ?? {};
  const devices = list(telemetry?.["devices"]), rows = list(telemetry?.["stages"]), read = list(metrics["gauges"]);
  const curves = (view.data.timeline?.curves ?? []).filter((curve) => curve.unit !== "B" && curve.unit !== "bytes");
  return (
    <Section id="telemetry" title="Telemetry">
      {devices.length + rows.length === 0 && <Empty>No device was read while this run was made: power, clocks and activity are not known.</Empty>}
      {devices.length > 0 && <ul class="plain">{devices.map((device, at) => <li key={at}>{sentence(device)}</li>)}</ul>}
      {rows.length > 0 && <Table caption="Telemetry by stage" columns={stages} rows={rows} />}
      {telemetry && rows.length > 0 && <p class="dim">A clock is slow below {shareText(telemetry["slow_clock_below"])} of the reference clock.</p>}
      {curves.length > 0 && <><h3>Readings over time</h3><TelemetryCurves curves={curves} /></>}
      {read.length > 0 && <><h3>Metrics of the server</h3><Table caption="Metrics of the server" columns={gauges} rows={read} /></>}
    </Section>
  );
}

function sentence(device: Row): string {
  const used = typeof device["energy_j"] === "number" ? `${joulesText(device["energy_j"])}, ` : "";
  return `${shown(device["name"])}: ${used}mean ${wattsText(device["power_w"])}, highest ${wattsText(device["highest_power_w"])} of ` +
    `${wattsText(device["power_limit_w"])}; reference clock ${clockText(device["reference_clock_mhz"])}; ` +
    `${plural(device["readings"] ?? 0, "reading")}, ${countText(device["readings_per_s"])} per second` +
    `${device["used"] === false ? "; not used by this run" : ""}.`;
}
