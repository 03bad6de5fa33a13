import { clockText, countText, degreesText, joulesText, type Maybe, plural, shareText, timeText, wattsText } from "../format";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { Value } from "../parts/unknown";
import { list, type Row, type View } from "../view";

const column = (title: string, key: string, format: (value: Maybe) => string, why: string, hint?: string): Column<Row> =>
  ({ title, value: (row) => row[key], show: (row) => <Value text={format(row[key])} why={row[why]} />, number: true, ...(hint ? { hint } : {}) });

const stages: Column<Row>[] = [
  { title: "Stage", value: (row) => row["stage"] },
  column("Time", "time_ns", timeText, ""),
  column("Energy", "energy_j", joulesText, "energy_why"),
  column("J/token", "joules_per_token", joulesText, "energy_why"),
  column("Power", "power_w", wattsText, "energy_why", "energy by time"),
  column("SM clock", "sm_clock_mhz", clockText, "clock_why", "mean of the readings"),
  column("Slow clock", "slow_clock_share", shareText, "clock_why", "readings with a clock well below the reference, of all in the stage"),
  column("Temperature", "temperature_c", degreesText, "clock_why"),
  column("SM active", "sm_active", shareText, "activity_why", "of the time, mean over SMs"),
  column("Occupancy", "sm_occupancy", shareText, "activity_why", "warps resident, of those that could be"),
  column("Tensor", "tensor_active", shareText, "activity_why", "tensor pipes busy, of the time"),
  column("DRAM", "dram_active", shareText, "activity_why", "memory interface busy, of the time"),
  { title: "Clock held back by", value: (row) => list(row["clock_limits"]).map((each) => `${each["why"]} ${shareText(each["share"])}`).join(", ") },
];

const gauges: Column<Row>[] = [
  { title: "What", value: (row) => row["what"] }, { title: "Server", value: (row) => row["server"] }, { title: "Unit", value: (row) => row["unit"] },
  { title: "Last", value: (row) => row["last"], number: true }, { title: "Highest", value: (row) => row["highest"], number: true },
];

export function Telemetry({ view }: { view: View }) {
  const telemetry: Row | null = view.data.report["telemetry"] ?? null, metrics: Row | null = view.data.report["metrics"] ?? null;
  const devices = list(telemetry?.["devices"]);
  return (
    <Section id="telemetry" title="Telemetry">
      {!telemetry && <Empty>No device was read while this run was made: power, clocks and activity are not known.</Empty>}
      {devices.length > 0 && <ul class="plain">{devices.map((device, at) => <li key={at}>{sentence(device)}</li>)}</ul>}
      {list(telemetry?.["stages"]).length > 0 && <Table caption="Telemetry by stage" columns={stages} rows={list(telemetry?.["stages"])} />}
      {telemetry && <p class="dim">A clock is slow below {shareText(telemetry["slow_clock_below"])} of the reference clock. The curves are in the <a href="#timeline">timeline</a>.</p>}
      {metrics && list(metrics["gauges"]).length > 0 && <><h3>Metrics of the server</h3><Table caption="Metrics of the server" columns={gauges} rows={list(metrics["gauges"])} /></>}
    </Section>
  );
}

function sentence(device: Row): string {
  const energy = typeof device["energy_j"] === "number" ? `${joulesText(device["energy_j"])}, ` : "";
  return `${shown(device["name"])}: ${energy}mean ${wattsText(device["power_w"])}, highest ${wattsText(device["highest_power_w"])} of ` +
    `${wattsText(device["power_limit_w"])}; reference clock ${clockText(device["reference_clock_mhz"])}; ${plural(device["readings"] ?? 0, "reading")}, ` +
    `${countText(device["readings_per_s"])} per second${device["used"] === false ? "; not used by this run" : ""}.`;
}
