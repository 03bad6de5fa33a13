// Lines with axes, a read-out under the pointer and by arrow keys, and their values as a table.
import { useState } from "preact/hooks";
import type { Curve, Report, StepCurve } from "../data";
import { column, DataTable } from "../table";
import { bytes, count, inUnit, percent, time, timeLabels, visible } from "../text";
import { Tip, useWidth } from "./canvas";
import { categoryVariable, clamp, firstAbove, linearScale, type Range, roundValues, type Scale, stageCategory } from "./drawing";

export interface LineChartProps {
  title: string; series: Series[]; unit: string; height?: number;
  caption?: string;            // above the chart; the title where it is not given
  median?: boolean;            // draws the median and marks the extremes of the first series
  limit?: number | null; limitName?: string;
  xs?: Range;                  // the extent of the series where it is not given
  across?: string;             // unit of x; time in ns where it is not given
  more?: (series: Series, index: number) => string;  // what else the read-out says
}

const margin = { left: 64, right: 10, top: 8, bottom: 20 };
const dashes = ["", "6 3", "2 3", "8 3 2 3"];
const mostRows = 200, mostDots = 40;
const colourOf = (index: number): string => (index === 0 ? "var(--p-line)" : `var(${categoryVariable([0, 4, 2, 5][index % 4]!)})`);

export function LineChart({ title, caption, series, unit, height = 150, median, limit, limitName, xs, across = "ns", more }: LineChartProps) {
  const [, setElement, width] = useWidth<HTMLDivElement>();
  const [pointed, setPointed] = useState<number | null>(null);  // ns, by the pointer
  const [walked, setWalked] = useState<number | null>(null);    // by keys
  const cursor = pointed ?? walked;
  const extent = xs ?? extentOf(series.flatMap((each) => each.x));
  const top = Math.max(extentOf(series.flatMap((each) => each.y))[1], limit ?? 0, 0) || 1;
  const x = linearScale(extent, [margin.left, Math.max(margin.left + 1, width - margin.right)]);
  const y = linearScale([0, top * 1.05], [height - margin.bottom, margin.top]);
  const marks = median && series[0] ? marksOf(series[0].y) : null;
  const at = (each: Series): number => (cursor === null ? -1 : nearestIndex(each.x, cursor));
  const words = (): string => series.filter((each) => at(each) >= 0).map((each) => {
    const index = at(each), least = each.low ? `${inUnit(each.low[index]!, unit)} to ` : "";
    return `${each.name} ${least}${inUnit(each.y[index]!, unit)}${more?.(each, index) ?? ""}`;
  }).join(", ");
  const main = series[0], read = main ? main.x[at(main)] : undefined;  // where the read-out stands
  const follow = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    setPointed(clamp(x.toValue(event.clientX - box.left), extent[0], extent[1]));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") setWalked(null);
    if (!step || !main || main.x.length === 0) return;
    event.preventDefault();
    setPointed(null);
    setWalked(main.x[cursor === null ? 0 : clamp(nearestIndex(main.x, cursor) + step, 0, main.x.length - 1)]!);
  };
  return (
    <div class="picture p-chart" ref={setElement} role="region" aria-label={title}>
      <p class="p-caption">{caption ?? title}</p>
      {series.length > 1 && (
        <ul class="p-legend">{series.map((each, index) => (
          <li key={each.name} class="p-key"><svg width={22} height={8} aria-hidden="true">
            <line class="line" x1={0} x2={22} y1={4} y2={4} style={{ stroke: colourOf(index), strokeDasharray: dashes[index % 4] }} />
          </svg>{each.name}</li>))}
        </ul>
      )}
      {width > 0 && (
        <svg width={width} height={height} tabIndex={0} role="img" aria-label={`${title}: ${summary(series, unit)}`} onKeyDown={onKeyDown}
             onPointerMove={follow} onPointerDown={follow} onPointerLeave={() => setPointed(null)} onBlur={() => setWalked(null)}>
          <ChartAxes x={x} y={y} width={width} height={height} extent={extent} top={top} unit={unit} across={across} />
          {series.map((each, index) => (
            <g key={each.name}>
              {each.low && <path class="band" d={bandPath(each, x, y)} style={{ fill: colourOf(index) }} />}
              <path class="line" d={linePath(each, x, y)} style={{ stroke: colourOf(index), strokeDasharray: dashes[index % 4] }} />
              {each.x.length < mostDots && !each.stepped && each.x.map((time, point) => (
                <circle key={point} cx={x.toPixel(time)} cy={y.toPixel(each.y[point]!)} r={2.5} style={{ fill: colourOf(index) }} />
              ))}
            </g>
          ))}
          {limit != null && <Level at={y.toPixel(limit)} width={width} text={`${limitName ?? "limit"} ${inUnit(limit, unit)}`} />}
          {marks && main && main.x.length > 2 && (
            <>
              <Level at={y.toPixel(marks.median)} width={width} text={`median ${inUnit(marks.median, unit)}`} />
              {[marks.least, marks.most].map((value) => (
                <circle key={value} class="cursor" cx={x.toPixel(main.x[main.y.indexOf(value)]!)} cy={y.toPixel(value)} r={3.5} />
              ))}
            </>
          )}
          {read !== undefined && (
            <line class="cursor" x1={x.toPixel(read)} x2={x.toPixel(read)} y1={margin.top} y2={height - margin.bottom} />
          )}
        </svg>
      )}
      {read !== undefined && <Tip x={x.toPixel(read)} y={height / 4} width={width}>at {inUnit(read, across)}: {words()}</Tip>}
      <p class="p-spoken" aria-live="polite">{read !== undefined ? `at ${inUnit(read, across)}: ${words()}` : ""}</p>
      <ChartTable title={title} series={series} unit={unit} across={across} />
    </div>
  );
}

function Level({ at, width, text }: { at: number; width: number; text: string }) {
  return (
    <g><line class="mark" x1={margin.left} x2={width - margin.right} y1={at} y2={at} />
      <text class="muted label" x={width - margin.right - 2} y={at > 22 ? at - 4 : at + 12} text-anchor="end">{text}</text></g>
  );
}

interface ChartAxesProps { x: Scale; y: Scale; width: number; height: number; extent: Range; top: number; unit: string; across: string }

function ChartAxes({ x, y, width, height, extent, top, unit, across }: ChartAxesProps) {
  const times = roundValues(extent, Math.max(1, (width - margin.left) / 100));
  const labels = across === "ns" ? timeLabels(times) : times.map((value) => inUnit(value, across));
  return (
    <g>
      {roundValues([0, top], height > 100 ? 4 : 2).map((value) => (
        <g key={value}>
          <line class="grid" x1={margin.left} x2={width - margin.right} y1={y.toPixel(value)} y2={y.toPixel(value)} />
          <text x={margin.left - 5} y={y.toPixel(value) + 4} text-anchor="end">{inUnit(value, unit)}</text>
        </g>
      ))}
      {times.map((value, index) => (
        <g key={value}>
          <line class="axis" x1={x.toPixel(value)} x2={x.toPixel(value)} y1={height - margin.bottom} y2={height - margin.bottom + 4} />
          <text x={x.toPixel(value)} y={height - 5}
                text-anchor={x.toPixel(value) > width - 30 ? "end" : index === 0 ? "start" : "middle"}>{labels[index]}</text>
        </g>
      ))}
    </g>
  );
}

function ChartTable({ title, series, unit, across }: { title: string; series: Series[]; unit: string; across: string }) {
  const every = (each: Series): number => Math.max(1, Math.ceil((each.x.length * series.length) / mostRows));
  const rows = () => series.flatMap((each) => each.x.flatMap((at, index) => (
    index % every(each) === 0 ? [{ series: each.name, at, value: each.y[index]! }] : [])));
  const thinned = series.some((each) => every(each) > 1) ? ", some of the values" : "";
  return <DataTable description={{ name: "chart", title: `${title} as a table${thinned}`, columns: [
    column("word", "series", "series"), column("measure", "at", "at", "", { unit: across }),
    column("measure", "value", "value", "", { unit })] }} rows={rows} />;
}

// Lines over time or steps.
export interface Series {
  name: string; x: number[]; y: number[];
  low?: number[];     // y is then the highest of the readings in each place, and the band between is filled
  stepped?: boolean;  // holds until the next value, as memory does
}

export interface Marks { least: number; median: number; most: number }

// Median by nearest rank: a value that was really there.
export function marksOf(values: number[]): Marks | null {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  return { least: sorted[0]!, median: sorted[Math.ceil(sorted.length / 2) - 1]!, most: sorted[sorted.length - 1]! };
}

export function extentOf(values: number[]): Range {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least <= most ? [least, most] : [0, 1];
}

// Index of the value nearest to `at`; the values rise. -1: there are none.
export function nearestIndex(values: number[], at: number): number {
  const above = firstAbove(values, at);
  if (above === 0 || above === values.length) return above === 0 && values.length > 0 ? 0 : values.length - 1;
  return at - values[above - 1]! <= values[above]! - at ? above - 1 : above;
}

export function linePath({ x, y, stepped }: Series, xs: Scale, ys: Scale): string {
  let path = "";
  for (let index = 0; index < x.length; ++index) {
    const [right, up] = [xs.toPixel(x[index]!).toFixed(1), ys.toPixel(y[index]!).toFixed(1)];
    path += index === 0 ? `M${right} ${up}` : stepped ? `H${right}V${up}` : `L${right} ${up}`;
  }
  return path;
}

export function bandPath({ x, y, low, stepped }: Series, xs: Scale, ys: Scale): string {
  if (!low) return "";
  if (stepped) {
    const back = low.map((value, index) => `V${ys.toPixel(value).toFixed(1)}H${xs.toPixel(x[index]!).toFixed(1)}`).reverse();
    return y.length === 0 ? "" : `${linePath({ name: "", x, y, stepped }, xs, ys)}${back.join("")}Z`;
  }
  const corner = (index: number, value: number) => `${xs.toPixel(x[index]!).toFixed(1)} ${ys.toPixel(value).toFixed(1)}`;
  const up = y.map((value, index) => corner(index, value)), down = low.map((value, index) => corner(index, value)).reverse();
  return up.length === 0 ? "" : `M${up.join("L")}L${down.join("L")}Z`;
}

// "decode: least 5 ms, median 6 ms, most 9 ms"
export function summary(series: Series[], unit: string): string {
  return series.map(({ name, y }) => {
    const marks = marksOf(y);
    if (!marks) return `${name}: no values`;
    return `${name}: min ${inUnit(marks.least, unit)}, median ${inUnit(marks.median, unit)}, max ${inUnit(marks.most, unit)}`;
  }).join("; ");
}

// Memory over time, from the parts of the report that may have it.
export interface Panel { title: string; series: Series[]; capacity: number | null }

interface Sample { ts_ns: number; bytes?: number; rss_bytes?: number }

function stepsOf(name: string, samples: Sample[] | null | undefined, origin: number): Series[] {
  if (!Array.isArray(samples) || samples.length === 0) return [];
  const y = samples.map((each) => each.bytes ?? each.rss_bytes ?? 0);
  return [{ name, x: samples.map((each) => each.ts_ns - origin), y, stepped: true }];
}

export function memoryPanels(report: Report, curves: Curve[], origin: number): Panel[] {
  const devices: Panel[] = (report["device_memory"]?.devices ?? []).map((device: Record<string, any>, index: number): Panel => ({
    title: visible(String(device["name"] ?? "device")), capacity: device["total_bytes"] || null,
    series: [
      ...stepsOf("in use on the device (driver)", device["driver"]?.over_time, origin),
      ...stepsOf("allocated by the program", device["allocations"]?.over_time, origin),
      ...stepsOf("held by the framework's allocator", report["allocators"]?.devices?.[index]?.events?.held_over_time, origin),
    ],
  }));
  const host: Panel = { title: "host, all processes", series: stepsOf("resident", report["host"]?.memory, origin), capacity: null };
  const known = [...devices, host].filter((panel) => panel.series.length > 0);
  return devices.some((panel) => panel.series.length > 0) ? known : [...curvePanels(curves), ...known];
}

// What only the telemetry knows.
function curvePanels(curves: Curve[]): Panel[] {
  const groups = new Map<string, Panel>();
  for (const { group, name, unit, ts, low, high } of curves) {
    if (unit !== "bytes" && unit !== "B") continue;
    const panel = groups.get(group) ?? { title: visible(group), series: [], capacity: null };
    panel.series.push({ name: visible(name), x: ts, y: high, low });
    groups.set(group, panel);
  }
  return [...groups.values()];
}

export const peakOf = ({ series }: Panel): number => extentOf(series.flatMap((each) => each.y))[1];

// Memory of devices and of the host over the run.
const limitFrom = 0.3;  // of the capacity: below, the line of it would flatten the curve

export function MemoryChart({ report, curves, origin_ns }: { report: Report; curves: Curve[]; origin_ns?: number }) {
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

// Durations of the steps of each stage over the run.
export function StepCurves({ curves }: { curves: StepCurve[] }) {
  const known = curves.filter((curve) => curve.duration_ns.length > 0);
  const origin = known.reduce((first, curve) => Math.min(first, curve.begin_ns[0] ?? first), Infinity);
  return (
    <>
      {known.map((curve) => {
        const stage = visible(curve.stage);
        const series: Series = { name: stage, x: curve.begin_ns.map((ns) => ns - origin), y: curve.duration_ns };
        const thinned = curve.steps > curve.duration_ns.length ? ", thinned to the slowest" : "";
        const title = `${stage}: duration of ${count(curve.steps)} ${curve.steps === 1 ? "step" : "steps"}${thinned}`;
        return (
          <div key={curve.stage} style={{ "--p-line": `var(${categoryVariable(stageCategory(curve.stage))})` }}>
            <LineChart title={title} caption={`${title}: ${marks(curve.duration_ns)}`} series={[series]} unit="ns" median
                       more={(_, index) => workOf(curve.batch[index], curve.context[index])} />
          </div>
        );
      })}
    </>
  );
}

const marks = (durations: number[]): string => {
  const found = marksOf(durations)!;
  return `min ${time(found.least)}, median ${time(found.median)}, max ${time(found.most)}`;
};

// 0 is unknown.
function workOf(batch: number | undefined, context: number | undefined): string {
  return `${batch ? `, batch ${count(batch)}` : ""}${context ? `, context ${count(context)}` : ""}`;
}

// Readings of devices and processes over the run, one small chart each.
export function TelemetryCurves({ curves }: { curves: Curve[] }) {
  if (curves.length === 0) return <p>No readings over time were recorded.</p>;
  const xs = extentOf(curves.flatMap((curve) => curve.ts));
  return (
    <>
      {curves.map(({ group, name, unit, ts, low, high }) => {
        const series = { name: visible(name), x: ts, y: high, low };
        return (
          <LineChart key={`${group} ${name}`} title={`${visible(group)}: ${visible(name)}`}
                     caption={`${visible(group)}, ${summary([series], unit)}`} series={[series]} unit={unit} xs={xs} height={90} />
        );
      })}
    </>
  );
}


// Lowest at the bottom, highest at the top: it shows the course, the numbers stand beside it.
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const width = 120, height = 28, margin = 3;
  const [least, most] = extentOf(values);
  const x = linearScale([0, Math.max(1, values.length - 1)], [margin, width - margin]);
  const y = linearScale(least === most ? [least - 1, most + 1] : [least, most], [height - margin, margin]);
  const places = values.map((_, index) => index).filter((index) => Number.isFinite(values[index]));
  const series = { name: label, x: places, y: places.map((index) => values[index]!) };
  const highest = values.indexOf(most);
  return (
    <span class="picture p-spark" role="img" aria-label={label}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        <path class="line" d={linePath(series, x, y)} />
        {highest >= 0 && <circle class="dot" cx={x.toPixel(highest)} cy={y.toPixel(most)} r={2.2} />}
      </svg>
    </span>
  );
}
