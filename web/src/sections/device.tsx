// What devices executed, and what they held and reported meanwhile.
import { list, onGpu, type Row, type View } from "../data";
import { Empty, Section, shown } from "../parts";
import { MemoryChart, TelemetryCurves } from "../pictures/charts";
import { column, type Description, Table, TitledTable } from "../table";
import { bytesText, countText, joulesText, plural, shareText, wattsText } from "../text";

const kernels: Description = { name: "kernels", title: "Kernels", columns: [
  column("name", "Kernel", "name"), column("word", "Stage", "stage"), column("count", "Executions", "executions"),
  column("time", "Time", "time_ns"), column("bar", "Share", "share", "of the time of all GPU kernels"),
  column("time", "Estimated", "estimated_ns", "of its time: in graph launches that were not recorded node by node"),
  column("number", "FLOP/s", "flops_per_s", "of the matrix products that it stands for", { unit: "FLOP/s" }),
  column("name", "Operators", "ops"),
] };

const operators: Description = { name: "framework_operators", title: "Operators of the framework", columns: [
  column("name", "Operator", "name"), column("count", "Calls", "calls"),
  column("time", "On the device", "device_ns", "kernels and copies launched in it"),
  column("time", "Self", "self_device_ns", "of those launched in no operator inside"),
  column("time", "On the host", "host_ns"), column("count", "Launches", "launches"),
] };

const totals: Description = { name: "totals", title: "Totals as the other tool added them up", columns: [
  column("name", "Name", "name"), column("word", "Kind", "kind"), column("count", "Calls", "calls"),
  column("time", "On the device", "device_ns"), column("time", "Self", "self_device_ns"), column("time", "On the host", "host_ns"),
] };

export function Kernels({ view }: { view: View }) {
  const report = view.data.report;
  // Most kernels have no estimate and no product: a dash in every row would say nothing.
  const rows = list(report["kernels"]).map((row) =>
    ({ ...row, estimated_ns: row["estimated_ns"] || undefined, flops_per_s: row["flops_per_s"] ?? undefined }));
  const why = onGpu(report)
    ? "No kernel of the GPU was recorded."
    : "No GPU executed anything; what the CPU computed is in GEMM shapes and host functions.";
  return (
    <Section id="kernels" title="Kernels" lead={rows.length ? "Kernels of GPUs, most time first." : undefined}>
      {rows.length ? <Table description={kernels} rows={rows} /> : <Empty>{why}</Empty>}
      <TitledTable description={operators} rows={list(report["framework_operators"])} />
      <TitledTable description={totals} rows={list(report["totals"])} />
    </Section>
  );
}

const products: Description = { name: "gemms", title: "Matrix products by shape", columns: [
  column("word", "Shape m × n × k", "shape"), column("word", "Type", "type"), column("word", "Stage", "stage"),
  column("name", "Operators", "ops"), column("count", "Calls", "calls"),
  column("time", "Time", "time_ns", "of the kernels that the calls launched"),
  column("number", "FLOP/s", "flops_per_s", "", { unit: "FLOP/s", why: "why" }),
  column("share", "Of peak", "of_peak", "of one device's peak FLOP/s of that type", { why: "why" }),
  column("number", "B/s", "bytes_per_s", "operands and result moved once", { unit: "B/s", why: "why" }),
  column("name", "Function", "function"),
] };

const attention: Description = { name: "attention", title: "Attention shapes", columns: [
  column("word", "Queries × keys", "shape"), column("number", "Batch", "batch"), column("number", "Heads", "heads"),
  column("number", "KV heads", "kv_heads"), column("number", "Head size", "head_size"), column("word", "Type", "type"),
  column("word", "Stage", "stage"), column("count", "Calls", "calls"), column("time", "Time", "time_ns"),
  column("number", "FLOP/s", "flops_per_s", "", { unit: "FLOP/s", why: "why" }), column("share", "Of peak", "of_peak", "", { why: "why" }),
] };

const shapeOf = (row: Row): string =>
  `${row["m"]} × ${row["n"]} × ${row["k"]}${row["batch"] > 1 ? `, batch ${row["batch"]}` : ""}`;

export function Gemms({ view }: { view: View }) {
  const report = view.data.report, device = list(report["devices"])[0];
  const rows = list(report["gemms"]).map((row): Row => ({ ...row, shape: shapeOf(row) }));
  const cache = device?.["cache_bytes"] ? ` What fits its cache of ${bytesText(device["cache_bytes"])} may move faster than memory.` : "";
  const lead = device ? `Most time first; shares are of the peak of ${shown(device["name"])}.${cache}` : "Most time first.";
  return (
    <Section id="gemms" title="GEMM shapes" lead={rows.length ? lead : undefined}>
      {rows.length
        ? <Table description={products} rows={rows} />
        : <Empty>No matrix product was seen: no BLAS library that is known here was called, or shapes were not recorded.</Empty>}
      <TitledTable description={attention}
                   rows={list(report["attention"]).map((row) => ({ ...row, shape: `${row["queries"]} × ${row["keys"]}` }))} />
    </Section>
  );
}

const sizes = [column("count", "Allocations", "allocations"), column("bytes", "Bytes", "bytes"), column("bytes", "Largest", "largest_bytes")];
const atPeak: Description = { name: "at_peak", title: "Allocations at the peak", rows_shown: 8,
  columns: [column("name", "Allocated in", "ranges"), column("name", "Function", "function"), ...sizes] };
const byStack: Description = { name: "allocator_at_peak", title: "In use at the allocator's peak", rows_shown: 8,
  columns: [column("name", "Stack", "stack"), ...sizes] };
const gains: Description = { name: "gains", title: "Host memory gained", rows_shown: 8, columns: [
  column("name", "Range", "range"), column("word", "Stage", "stage"), column("count", "Ranges", "ranges"),
  column("bytes", "Gained", "gained_bytes"), column("bytes", "Most at once", "largest_bytes"),
] };

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
      {devices.map((device, at) => (
        <DevicePeak key={at} device={device} segments={report["device_memory"]["allocations_are_segments"] === true} />
      ))}
      {list(allocators["devices"]).filter((device) => device["events"]).map(({ name, events }, at) => (
        <div key={at}>
          <h3>Allocator of {shown(name)}: {bytesText(events["peak_bytes"])} in use at its peak, {bytesText(events["held_at_peak_bytes"])} held</h3>
          <Table description={byStack} rows={list(events["at_peak"])} />
        </div>
      ))}
      {list(allocators["out_of_memory"]).map((text, at) => <p key={at} class="notice">{shown(text)}</p>)}
      <TitledTable description={gains} rows={list(report["host"]?.["gains"])} />
    </Section>
  );
}

function DevicePeak({ device, segments }: { device: Row; segments: boolean }) {
  const made: Row | null = device["allocations"], driver: Row | null = device["driver"];
  if (!made && !driver) return null;
  const peak = made?.["peak_bytes"] ?? driver?.["peak_bytes"], total = device["total_bytes"];
  return (
    <>
      <h3>
        {shown(device["name"])}: {bytesText(peak)} at the peak{total ? `, ${shareText(peak / total)} of ${bytesText(total)}` : ""}
        {made ? "" : " (the driver's count, of all programs)"}
      </h3>
      {made && segments && <p class="dim">Allocations are segments that the framework's own allocator divides.</p>}
      <Table description={atPeak} rows={list(made?.["at_peak"])} />
    </>
  );
}

const energy = { why: "energy_why" }, clock = { why: "clock_why" }, active = { why: "activity_why" };
const readings: Description = { name: "telemetry_stages", title: "Telemetry by stage", columns: [
  column("word", "Stage", "stage"), column("time", "Time", "time_ns"),
  column("number", "Energy", "energy_j", "", { ...energy, unit: "J" }),
  column("number", "J/token", "joules_per_token", "", { ...energy, unit: "J" }),
  column("number", "Power", "power_w", "energy by time", { ...energy, unit: "W" }),
  column("number", "SM clock", "sm_clock_mhz", "mean of the readings", { ...clock, unit: "MHz" }),
  column("share", "Slow clock", "slow_clock_share", "readings with a clock well below the reference, of all in the stage", clock),
  column("number", "Temperature", "temperature_c", "", { ...clock, unit: "°C" }),
  column("share", "SM active", "sm_active", "of the time, mean over SMs", active),
  column("share", "Occupancy", "sm_occupancy", "warps resident, of those that could be", active),
  column("share", "Tensor", "tensor_active", "tensor pipes busy, of the time", active),
  column("share", "DRAM", "dram_active", "memory interface busy, of the time", active),
  column("text", "Clock held back by", "limits"),
] };
const gauges: Description = { name: "gauges", title: "Metrics of the server", columns: [
  column("word", "What", "what"), column("word", "Server", "server"), column("word", "Unit", "unit"), column("count", "Last", "last"),
  column("count", "Highest", "highest"),
] };

export function Telemetry({ view }: { view: View }) {
  const telemetry: Row | null = view.data.report["telemetry"] ?? null;
  const devices = list(telemetry?.["devices"]);
  const rows = list(telemetry?.["stages"]).map((row): Row =>
    ({ ...row, limits: list(row["clock_limits"]).map((each) => `${each["why"]} ${shareText(each["share"])}`).join(", ") }));
  const curves = (view.data.timeline?.curves ?? []).filter((curve) => curve.unit !== "B" && curve.unit !== "bytes");
  const note = `A clock is slow below ${shareText(telemetry?.["slow_clock_below"])} of the reference clock.`;
  return (
    <Section id="telemetry" title="Telemetry">
      {devices.length + rows.length === 0 && <Empty>No device was read while this run was made: power, clocks and activity are not known.</Empty>}
      {devices.length > 0 && <ul class="plain">{devices.map((device, at) => <li key={at}>{sentence(device)}</li>)}</ul>}
      <Table description={{ ...readings, note }} rows={rows} />
      {curves.length > 0 && <><h3>Readings over time</h3><TelemetryCurves curves={curves} /></>}
      <TitledTable description={gauges} rows={list(view.data.report["metrics"]?.["gauges"])} />
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
