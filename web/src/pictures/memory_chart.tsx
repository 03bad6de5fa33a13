// Memory of devices and of the host over the run.
import { LineChart } from "./charts/line_chart";
import { memoryPanels, peakOf } from "./charts/memory";
import { extentOf } from "./charts/series";
import "./pictures.css";
import type { MemoryChartProps } from "./props";
import { bytes, percent } from "./units";

const limitFrom = 0.3;  // of the capacity: below, the line of it would flatten the curve

export function MemoryChart({ report, curves, origin_ns }: MemoryChartProps) {
  const first = (): number => extentOf(memoryPanels(report, [], 0).flatMap((panel) => panel.series.flatMap((each) => each.x)))[0];
  const panels = memoryPanels(report, curves, origin_ns ?? first());
  if (panels.length === 0) return <p>No memory over time was recorded.</p>;
  const xs = extentOf(panels.flatMap((panel) => panel.series.flatMap((each) => each.x)));
  return (
    <>
      {panels.map((panel) => {
        const peak = peakOf(panel), near = panel.capacity !== null && peak > limitFrom * panel.capacity;
        const of = panel.capacity ? `, ${percent(peak / panel.capacity)} of ${bytes(panel.capacity)}` : "";
        return (
          <LineChart key={panel.title} title={`memory of ${panel.title}`} caption={`${panel.title}: peak ${bytes(peak)}${of}`}
                     series={panel.series} unit="bytes" xs={xs} limit={near ? panel.capacity : null} limitName="capacity" />
        );
      })}
    </>
  );
}
