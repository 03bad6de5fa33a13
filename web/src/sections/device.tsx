// What devices executed, and what they held and reported meanwhile.
import { list, onGpu, type Row, type View } from "../data";
import { DescribedTable } from "../described";
import { Empty, Section, shown } from "../parts";
import { MemoryChart, TelemetryCurves } from "../pictures/charts";
import { bytesText, countText, joulesText, plural, shareText, wattsText } from "../text";

export function Kernels({ view }: { view: View }) {
  const report = view.data.report;
  const why = onGpu(report)
    ? "No kernel of the GPU was recorded."
    : "No GPU executed anything; what the CPU computed is in GEMM shapes and host functions.";
  return (
    <Section id="kernels" title="Kernels">
      <DescribedTable report={report} path="kernels[]" none={why} />
      <DescribedTable report={report} path="framework_operators[]" title="Operators of the framework" />
      <DescribedTable report={report} path="totals[]" />
    </Section>
  );
}

export function Gemms({ view }: { view: View }) {
  const report = view.data.report, device = list(report["devices"])[0];
  const cache = device?.["cache_bytes"] ? ` What fits its cache of ${bytesText(device["cache_bytes"])} may move faster than memory.` : "";
  return (
    <Section id="gemms" title="GEMM shapes" lead={device ? `peak % is of ${shown(device["name"])}.${cache}` : undefined}>
      <DescribedTable report={report} path="gemms[]#time" also={["gemms[]"]}
                      none="No matrix product was seen: no BLAS library that is known here was called, or shapes were not recorded." />
      <DescribedTable report={report} path="attention[]" />
    </Section>
  );
}

export function Memory({ view }: { view: View }) {
  const report = view.data.report, timeline = view.data.timeline;
  const curves = (timeline?.curves ?? []).filter((curve) => curve.unit === "B" || curve.unit === "bytes");
  const devices = list(report["device_memory"]?.["devices"]), allocators: Row = report["allocators"] ?? {};
  const read = devices.some((device) => device["allocations"] || device["driver"]) || list(report["host"]?.["memory"]).length > 0;
  return (
    <Section id="memory" title="Memory over time">
      {read || curves.length > 0
        ? <MemoryChart report={report} curves={curves} {...(timeline?.run ? { origin_ns: timeline.run[0] } : {})} />
        : <Empty>No memory was read: {shown(report["host"]?.["why"] ?? "the run has no readings of host or device memory")}.</Empty>}
      {devices.map((device, at) => <DevicePeak key={at} report={report} device={device} />)}
      {list(allocators["devices"]).map((device, at) => <Allocator key={at} report={report} device={device} />)}
      {list(allocators["out_of_memory"]).map((text, at) => <p key={at} class="notice">{shown(text)}</p>)}
      <DescribedTable report={report} path="host.gains[]" rows_shown={8} />
    </Section>
  );
}

function Allocator({ report, device }: { report: Row; device: Row }) {
  const events: Row | null = device["events"], name = shown(device["name"] ?? "the device"), path = "allocators.devices[]";
  const used = `${bytesText(events?.["peak_bytes"])} in use at its peak, ${bytesText(events?.["held_at_peak_bytes"])} held`;
  return (
    <>
      <DescribedTable report={report} path={`${path}.events.at_peak[]`} rows={list(events?.["at_peak"])} rows_shown={8}
                      title={`Allocator of ${name}: ${used}`} />
      <DescribedTable report={report} path={`${path}.events.never_freed[]`} rows={list(events?.["never_freed"])} rows_shown={8}
                      title={`Never freed on ${name}: ${bytesText(events?.["never_freed_bytes"])}`} />
      <DescribedTable report={report} path={`${path}.pools[]`} rows={list(device["pools"])} title={`Pools of the allocator of ${name}`} />
    </>
  );
}

function DevicePeak({ report, device }: { report: Row; device: Row }) {
  const made: Row | null = device["allocations"], driver: Row | null = device["driver"];
  if (!made && !driver) return null;
  const peak = made?.["peak_bytes"] ?? driver?.["peak_bytes"], total = device["total_bytes"];
  return (
    <>
      <h3>
        {shown(device["name"] ?? "Device")}: {bytesText(peak)} at the peak{total ? `, ${shareText(peak / total)} of ${bytesText(total)}` : ""}
        {made ? "" : " (the driver's count, of all programs)"}
      </h3>
      {made && report["device_memory"]["allocations_are_segments"] === true &&
        <p class="dim">Allocations are segments that the framework's own allocator divides.</p>}
      <DescribedTable report={report} path="device_memory.devices[].allocations.at_peak[]" rows={list(made?.["at_peak"])} rows_shown={8} />
    </>
  );
}

const energy = { why: "energy_why" }, clock = { why: "clock_why" }, active = { why: "activity_why" };
const readings = {
  energy_j: energy, joules_per_token: energy, power_w: energy, sm_clock_mhz: clock, lowest_sm_clock_mhz: clock, temperature_c: clock,
  slow_clock_share: { title: "slow clock %", ...clock }, sm_active: active, tensor_active: active, dram_active: active,
  limits: "clock held back by",
};

export function Telemetry({ view }: { view: View }) {
  const report = view.data.report, telemetry: Row | null = report["telemetry"] ?? null;
  const devices = list(telemetry?.["devices"]), below = shareText(telemetry?.["slow_clock_below"]);
  const rows = list(telemetry?.["stages"]).map((row): Row =>
    ({ ...row, limits: list(row["clock_limits"]).map((each) => `${each["why"]} ${shareText(each["share"])}`).join(", ") }));
  const curves = (view.data.timeline?.curves ?? []).filter((curve) => curve.unit !== "B" && curve.unit !== "bytes");
  return (
    <Section id="telemetry" title="Telemetry">
      {devices.length + rows.length === 0 && <Empty>No device was read while this run was made: power, clocks and activity are not known.</Empty>}
      {devices.length > 0 && <ul class="plain">{devices.map((device, at) => <li key={at}>{sentence(device)}</li>)}</ul>}
      <DescribedTable report={report} path="telemetry.stages[]" title="By stage" rows={rows} own={readings}
                      note={`A clock is slow below ${below} of the reference clock.`} />
      {curves.length > 0 && <><h3>Readings over time</h3><TelemetryCurves curves={curves} /></>}
      {["gauges", "counters", "latencies"].map((kind) => (
        <DescribedTable key={kind} report={report} path={`metrics.${kind}[]`} title={`Metrics of the server: ${kind}`} />
      ))}
    </Section>
  );
}

function sentence(device: Row): string {
  const used = typeof device["energy_j"] === "number" ? `${joulesText(device["energy_j"])}, ` : "";
  return `${shown(device["name"])}: ${used}mean ${wattsText(device["power_w"])}, highest ${wattsText(device["highest_power_w"])} of ` +
    `${wattsText(device["power_limit_w"])}; reference clock ${countText(device["reference_clock_mhz"])} MHz; ` +
    `${plural(device["readings"] ?? 0, "reading")}, ${countText(device["readings_per_s"])} per second` +
    `${device["used"] === false ? "; not used by this run" : ""}.`;
}
