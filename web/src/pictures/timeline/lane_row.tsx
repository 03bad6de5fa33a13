import { useLayoutEffect, useRef } from "preact/hooks";
import { visible } from "../../visible";
import { prepare } from "../canvas";
import { inUnit, percent, time } from "../units";
import { type CurveStyle, drawCurve } from "./curve";
import { drawLane, type LaneStyle } from "./draw";
import type { Segment } from "./patches";
import { type CurveRow as CurveData, curveHeight, type LaneRow as LaneData } from "./rows";
import { laneTotal } from "./slices";

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
