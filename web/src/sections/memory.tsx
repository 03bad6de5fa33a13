import { bytesText, shareText } from "../format";
import { bytes, count, name, word } from "../parts/columns";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { MemoryChart } from "../pictures/memory_chart";
import { list, type Row, type View } from "../view";

const sizes = [count("Allocations", "allocations"), bytes("Bytes", "bytes"), bytes("Largest", "largest_bytes")];
const atPeak: Column<Row>[] = [name("Allocated in", "ranges"), name("Function", "function"), ...sizes];
const byStack: Column<Row>[] = [name("Stack", "stack"), ...sizes];
const gains: Column<Row>[] = [
  name("Range", "range"), word("Stage", "stage"), count("Ranges", "ranges"), bytes("Gained", "gained_bytes"), bytes("Most at once", "largest_bytes"),
];

export function Memory({ view }: { view: View }) {
  const report = view.data.report, timeline = view.data.timeline;
  const curves = (timeline?.curves ?? []).filter((curve) => curve.unit === "B" || curve.unit === "bytes");
  const devices = list(report["device_memory"]?.["devices"]), grown = list(report["host"]?.["gains"]);
  const allocators: Row = report["allocators"] ?? {};
  const read = devices.some((device) => device["allocations"] || device["driver"]) || list(report["host"]?.["memory"]).length > 0;
  return (
    <Section id="memory" title="Memory over time">
      {read || curves.length > 0
        ? <MemoryChart report={report} curves={curves} {...(timeline?.run ? { origin_ns: timeline.run[0] } : {})} />
        : <Empty>No memory was read: {shown(report["host"]?.["why"] ?? "the run has no readings of host or device memory")}.</Empty>}
      {devices.map((device, at) => (
        <DevicePeak key={at} device={device} segments={report["device_memory"]["allocations_are_segments"] === true} />
      ))}
      {list(allocators["devices"]).map((device, at) => <Allocator key={at} device={device} />)}
      {list(allocators["out_of_memory"]).map((text, at) => <p key={at} class="notice">{shown(text)}</p>)}
      {grown.length > 0 && <h3>Host memory gained</h3>}
      {grown.length > 0 && <Table caption="Host memory gained by range" columns={gains} rows={grown} first={8} />}
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
      {made && list(made["at_peak"]).length > 0 &&
        <Table caption="Allocations at the peak" columns={atPeak} rows={list(made["at_peak"])} first={8} />}
    </>
  );
}

function Allocator({ device }: { device: Row }) {
  const events: Row | null = device["events"];
  if (!events) return null;
  return (
    <>
      <h3>
        Allocator of {shown(device["name"])}: {bytesText(events["peak_bytes"])} in use at its peak,
        {" "}{bytesText(events["held_at_peak_bytes"])} held
      </h3>
      <Table caption="In use at the allocator's peak" columns={byStack} rows={list(events["at_peak"])} first={8} />
    </>
  );
}
