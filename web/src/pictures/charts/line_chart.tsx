// Lines with axes, a read-out under the pointer and by arrow keys, and their values as a table.
import { useState } from "preact/hooks";
import { categoryVariable } from "../colours";
import { DataTable } from "../data_table";
import { clamp, linearScale, type Range, roundValues, type Scale } from "../scale";
import { Tip } from "../tip";
import { inUnit, time, timeLabels } from "../units";
import { useWidth } from "../use_width";
import { bandPath, extentOf, linePath, marksOf, nearestIndex, type Series, summary } from "./series";

export interface LineChartProps {
  title: string; series: Series[]; unit: string; height?: number;
  caption?: string;            // above the chart; the title where it is not given
  median?: boolean;            // draws the median and marks the extremes of the first series
  limit?: number | null; limitName?: string;
  xs?: Range;                  // ns; the extent of the series where it is not given
  more?: (series: Series, index: number) => string;  // what else the read-out says
}

const margin = { left: 64, right: 10, top: 8, bottom: 20 };
const dashes = ["", "6 3", "2 3", "8 3 2 3"];
const mostRows = 200, mostDots = 40;
const colourOf = (index: number): string => (index === 0 ? "var(--p-line)" : `var(${categoryVariable([0, 4, 2, 5][index % 4]!)})`);

export function LineChart({ title, caption, series, unit, height = 150, median, limit, limitName, xs, more }: LineChartProps) {
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
          <ChartAxes x={x} y={y} width={width} height={height} extent={extent} top={top} unit={unit} />
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
      {read !== undefined && <Tip x={x.toPixel(read)} y={height / 4} width={width}>at {time(read)}: {words()}</Tip>}
      <p class="p-spoken" aria-live="polite">{read !== undefined ? `at ${time(read)}: ${words()}` : ""}</p>
      <ChartTable title={title} series={series} unit={unit} />
    </div>
  );
}

function Level({ at, width, text }: { at: number; width: number; text: string }) {
  return (
    <g><line class="mark" x1={margin.left} x2={width - margin.right} y1={at} y2={at} />
      <text class="muted label" x={width - margin.right - 2} y={at > 22 ? at - 4 : at + 12} text-anchor="end">{text}</text></g>
  );
}

interface ChartAxesProps { x: Scale; y: Scale; width: number; height: number; extent: Range; top: number; unit: string }

function ChartAxes({ x, y, width, height, extent, top, unit }: ChartAxesProps) {
  const times = roundValues(extent, Math.max(1, (width - margin.left) / 100)), labels = timeLabels(times);
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

function ChartTable({ title, series, unit }: { title: string; series: Series[]; unit: string }) {
  const every = (each: Series): number => Math.max(1, Math.ceil((each.x.length * series.length) / mostRows));
  const rows = () => series.flatMap((each) => each.x.flatMap((at, index) => (
    index % every(each) === 0 ? [[each.name, time(at), inUnit(each.y[index]!, unit)]] : [])));
  const thinned = series.some((each) => every(each) > 1);
  return (
    <DataTable title={`${title} as a table${thinned ? ", some of the values" : ""}`} rows={rows}
               columns={[{ name: "series" }, { name: "at", number: true }, { name: "value", number: true }]} />
  );
}
