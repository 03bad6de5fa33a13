import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { inUnit, moment, percent, time, timeLabels, visible } from "../../text";
import { prepare, type Theme } from "../canvas";
import { clamp, linearScale, type Range, roundValues, toggled } from "../drawing";
import { type CurveStyle, drawCurve, drawLane, extent, type LaneStyle } from "./draw";
import { pan } from "./input";
import {
  curveHeight, type CurveRow as CurveData, type Group, laneHeight, type LaneRow as LaneData, laneTotal, type Patch, type Segment,
} from "./patches";

interface RowsProps { parts: Segment[]; curveParts: Segment[]; labelWidth: number; style: LaneStyle }
interface LanesProps extends RowsProps {
  groups: Group[]; mark: Range | null; selection: Range | null;  // pixels; times
  onKeyDown: (event: KeyboardEvent) => void; handlers: JSX.HTMLAttributes<HTMLDivElement>;
}

export function Lanes({ groups, mark, selection, onKeyDown, handlers, ...rows }: LanesProps) {
  const { labelWidth, style } = rows;
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const toggle = (name: string) => setClosed((now) => toggled(now, name));
  return (
    <div class="p-lanes" onKeyDown={onKeyDown} {...handlers}>
      <div class="p-row p-axis-row" style={{ height: `${axisHeight}px` }}>
        <div class="p-label" style={{ width: `${labelWidth}px` }}>{labelWidth < narrow ? "time" : "time in the run"}</div>
        <TimeAxis window={style.window} width={style.width} />
      </div>
      {selection && !mark && <Selected range={selection} labelWidth={labelWidth} window={style.window} width={style.width} />}
      {mark && <div class="p-select" style={{ left: `${labelWidth + mark[0]}px`, width: `${mark[1] - mark[0]}px` }} />}
      {groups.map((group) => (
        <div key={group.name} role="group" aria-label={visible(group.name)}>
          <div class="p-row p-group-row">
            <button type="button" aria-expanded={!closed.has(group.name)} onClick={() => toggle(group.name)}>
              {closed.has(group.name) ? "▸" : "▾"} {visible(group.name)}
            </button>
          </div>
          {!closed.has(group.name) && <Rows group={group} {...rows} />}
        </div>
      ))}
    </div>
  );
}

function Selected({ range, labelWidth, window, width }: { range: Range; labelWidth: number; window: Range; width: number }) {
  const scale = linearScale(window, [0, width]);
  const [left, right] = [clamp(scale.toPixel(range[0]), 0, width), clamp(scale.toPixel(range[1]), 0, width)];
  if (right <= 0 || left >= width) return null;
  return <div class="p-selected" style={{ left: `${labelWidth + left}px`, width: `${Math.max(3, right - left)}px` }} />;
}

function Rows({ group, parts, curveParts, labelWidth, style }: RowsProps & { group: Group }) {
  return (
    <>
      {group.lanes.map((row) => (
        <LaneRow key={row.key} row={row} parts={parts} labelWidth={labelWidth} style={{ ...style, height: laneHeight(row.lane.kind) }} />
      ))}
      {group.curves.map((row) => (
        <CurveRow key={row.key} row={row} parts={curveParts} labelWidth={labelWidth}
                  style={{ window: style.window, width: style.width, height: curveHeight, theme: style.theme,
                           extent: extent(row.curve) }} />
      ))}
    </>
  );
}

export const narrow = 110;  // pixels of a label: on phones

// "ranges, python3 4242, depth 1": without the middle where it is too long, on phones only the end.
export function shortLabel(name: string, width: number): string {
  const parts = name.split(", "), last = parts[parts.length - 1]!;
  if (name.length * 6 <= width - 16 || parts.length === 1) return name;
  return width < narrow ? last : parts.length > 2 ? `${parts[0]}, ${last}` : name;
}

interface RowProps { parts: Segment[]; labelWidth: number }

export function LaneRow({ row, parts, labelWidth, style }: RowProps & { row: LaneData; style: LaneStyle }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { window, width, height, theme, colourBy, found, selected } = style;
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, width, height, theme.printing);
    if (context) drawLane(context, parts, row.key, style);
  }, [parts, row.key, width, height, theme, colourBy, found, selected]);
  const name = visible(row.lane.name);
  const short = shortLabel(name, labelWidth);
  const describe = (): string => {
    const total = laneTotal(parts, row.key);
    const share = percent(total.covered / (window[1] - window[0]));
    return `${visible(row.lane.group)}, ${name}: ${total.slices} slices, ${time(total.covered)}, ${share} of the window`;
  };
  return (
    <div class="p-row" data-lane={row.key} tabIndex={0} role="group" aria-label={`${row.lane.kind}: ${name}`}
         onFocus={(event) => event.currentTarget.setAttribute("aria-label", describe())}>
      <div class="p-label" style={{ width: `${labelWidth}px` }} title={name}>{short}</div>
      <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true" />
    </div>
  );
}

export function CurveRow({ row, parts, labelWidth, style }: RowProps & { row: CurveData; style: CurveStyle }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, style.width, curveHeight, style.theme.printing);
    if (context) drawCurve(context, parts, row.key, style);
  }, [parts, row.key, style.width, style.theme]);
  const highest = inUnit(style.extent[1], row.curve.unit);
  return (
    <div class="p-row p-curve" data-curve={row.key} role="img" aria-label={`${visible(row.curve.name)}, up to ${highest}`}>
      <div class="p-label" style={{ width: `${labelWidth}px` }} title={visible(row.curve.name)}>
        {visible(row.curve.name)}<br />up to {highest}
      </div>
      <canvas ref={canvas} style={{ width: `${style.width}px`, height: `${curveHeight}px` }} aria-hidden="true" />
    </div>
  );
}

export const axisHeight = 22;

// Times after the begin of the run. A window far into the run and short counts from its own begin: "+2 µs".
export function axisTicks([from, to]: Range, width: number): { at: number; label: string }[] {
  const values = roundValues([from, to], Math.max(2, width / 110));
  const near = to - from < from / 1000;
  if (!near) return timeLabels(values).map((label, index) => ({ at: values[index]!, label }));
  const [base, step] = [values[0] ?? from, (values[1] ?? to) - (values[0] ?? from)];
  const labels = timeLabels(values.map((value) => value - base));
  return values.map((at, index) => ({ at, label: index === 0 ? moment(at, 10 * step) : `+${labels[index]}` }));
}

export function TimeAxis({ window, width }: { window: Range; width: number }) {
  const scale = linearScale(window, [0, width]);
  return (
    <svg width={width} height={axisHeight} aria-hidden="true">
      {axisTicks(window, width).map(({ at, label }) => (
        <g key={at} transform={`translate(${scale.toPixel(at).toFixed(1)} 0)`}>
          <line class="axis" y1={axisHeight - 5} y2={axisHeight} />
          {scale.toPixel(at) < width - 7 * label.length && <text x={3} y={axisHeight - 7}>{label}</text>}
        </g>
      ))}
    </svg>
  );
}

// The whole run in a small strip, and where the window lies in it. For the pointer only: keys and buttons do the same.
const rowHeight = 12;

interface MinimapProps { overview: Patch; window: Range; width: number; theme: Theme; onWindow: (window: Range) => void }

export function Minimap({ overview, window, width, theme, onWindow }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const grabbed = useRef<number | null>(null);
  const limits: Range = [overview.from, overview.to];
  const lanes = [...overview.lanes].filter(([, { lane }]) => lane.kind === "stages" || lane.kind === "stream").slice(0, 3);
  const height = Math.max(1, lanes.length) * rowHeight;
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, width, height, theme.printing);
    lanes.forEach(([key], row) => {
      context?.setTransform(context.getTransform().a, 0, 0, context.getTransform().a, 0, context.getTransform().a * row * rowHeight);
      const style = { window: limits, width, height: rowHeight, theme, colourBy: "stage" as const, found: null, selected: null };
      if (context) drawLane(context, [{ from: overview.from, to: overview.to, patch: overview }], key, style);
    });
  }, [overview, width, theme]);
  const perNs = width / Math.max(1, limits[1] - limits[0]);
  const [left, right] = [clamp((window[0] - limits[0]) * perNs, 0, width), clamp((window[1] - limits[0]) * perNs, 0, width)];
  const timeAt = (event: PointerEvent) =>
    limits[0] + (event.clientX - (event.currentTarget as Element).getBoundingClientRect().left) / perNs;
  const move = (event: PointerEvent) => {
    if (grabbed.current === null) return;
    onWindow(pan(window, timeAt(event) - grabbed.current - window[0], limits));
  };
  return (
    <div class="p-map" style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true"
         onPointerDown={(event) => {
           (event.currentTarget as Element).setPointerCapture(event.pointerId);
           const time = timeAt(event);
           const inside = time >= window[0] && time <= window[1];
           grabbed.current = inside ? time - window[0] : (window[1] - window[0]) / 2;
           move(event);
         }}
         onPointerMove={move} onPointerUp={() => (grabbed.current = null)} onPointerCancel={() => (grabbed.current = null)}>
      <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} />
      <div class="p-outside" style={{ left: 0, width: `${left}px` }} />
      <div class="p-outside" style={{ left: `${right}px`, right: 0 }} />
      <div class="p-window" style={{ left: `${left}px`, width: `${Math.max(4, right - left)}px` }} />
    </div>
  );
}
