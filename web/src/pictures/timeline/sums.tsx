// The sums of a selected part of the time.
import { clipped, count, percent, plural, time, visible } from "../../text";
import type { DeviceSums, Selection, Sum } from "./selection";

interface Props { sums: Selection; live: boolean; onZoom: () => void; onClear: () => void }

export function SelectionSums({ sums, live, onZoom, onClear }: Props) {
  return (
    <section class="p-sums" aria-label="selected time">
      <p class="p-bar" role="status">
        <b>{time(sums.span)} selected</b>
        {sums.steps.length > 0 && <span>{sums.steps.map((step) => `${plural(step.count, `${step.name} step`)}`).join(", ")}</span>}
        <button type="button" onClick={onZoom}>zoom to it</button>
        <button type="button" onClick={onClear}>clear</button>
      </p>
      {sums.devices.map((device) => <Device key={device.name} device={device} span={sums.span} />)}
      {!live && (
        <p class="p-muted">Outside the steps that the page knows in full, kernels shorter than a pixel count under the name with most time.</p>
      )}
    </section>
  );
}

function Device({ device, span }: { device: DeviceSums; span: number }) {
  const gpu = device.name.startsWith("GPU") ? "GPU " : "";
  return (
    <>
      <p>
        <b>{visible(device.name)}</b>: {gpu}busy {percent(device.busy)}, {gpu}idle {percent(Math.max(0, 1 - device.busy))} of the time;{" "}
        {plural(device.kernels.count, "kernel")}, {time(device.kernels.ns)}
        {device.copies.count > 0 && <>; {plural(device.copies.count, "copy", "copies")}, {time(device.copies.ns)}</>}
      </p>
      <div class="p-columns">
        <Table title="kernel class" rows={device.byClass} of={device.kernels.ns} />
        <Table title="stage" rows={device.byStage} of={device.kernels.ns} />
        <Table title="kernel" rows={device.byName.slice(0, 8)} of={device.kernels.ns} />
        <Table title="no kernel, in steps" rows={device.gaps} of={span} whole="of the selection" />
      </div>
    </>
  );
}

function Table({ title, rows, of, whole = "of kernel time" }: { title: string; rows: Sum[]; of: number; whole?: string }) {
  if (rows.length === 0) return null;
  return (
    <div class="scroll">
      <table>
        <thead><tr><th scope="col">{title}</th><th scope="col" class="number">time</th><th scope="col" class="number">{whole}</th>
          <th scope="col" class="number">count</th></tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.name}><th scope="row">{clipped(row.name)}</th><td class="number">{time(row.ns)}</td>
              <td class="number">{percent(of > 0 ? row.ns / of : 0)}</td><td class="number">{count(row.count)}</td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
