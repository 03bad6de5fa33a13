// Stages, operators, modules and kernels under the roofs of the device.
import { useMemo, useState } from "preact/hooks";
import { visible } from "../visible";
import { DataTable } from "./data_table";
import { placeLabels } from "./labels";
import "./pictures.css";
import type { RooflineChartProps } from "./props";
import { levelDashes, RooflineLegend, shapes, stageColour } from "./roofline/legend";
import { Axes, type Frame, roofLabelAreas, Roofs } from "./roofline/plot";
import "./roofline/roofline.css";
import { bandwidthRoof, chooseRoof, distance, extents, flopRoofs, levelNames, levelOf, type Point, sourceText } from "./roofline/roofs";
import { logScale } from "./scale";
import { clipped, shortName } from "./short_name";
import { shapePath } from "./shapes";
import { Tip } from "./tip";
import { digits, rate, time } from "./units";
import { useWidth } from "./use_width";

const mostLabels = 12, reach = 24;
const columns = [
  { name: "name" }, { name: "kind" }, { name: "stage" }, { name: "FLOP/B", number: true }, { name: "FLOP/s", number: true },
  { name: "of the roof" }, { name: "time", number: true }, { name: "FLOPs and bytes from" },
];
const shorten = (text: string): string => (text.length > 34 ? `${text.slice(0, 33)}…` : text);

export function RooflineChart({ roofline, type }: RooflineChartProps) {
  const [, setElement, width] = useWidth<HTMLDivElement>();
  const [off, setOff] = useState<ReadonlySet<string>>(new Set());
  const [wanted, setWanted] = useState(type ?? null);
  const [pointed, setPointed] = useState<Point | null>(null);  // by the pointer
  const [walked, setWalked] = useState<Point | null>(null);    // by keys
  const chosen = pointed ?? walked;
  const height = Math.round(Math.max(260, Math.min(520, width * 0.6)));
  const roof = chooseRoof(roofline, wanted);
  const far = (point: Point): string => distance(point, roof, bandwidthRoof(roofline, point));
  const frame = useMemo(() => frameOf(roofline, width, height), [roofline, width, height]);
  const points = roofline.points.filter((point) =>
    ![`kind ${point.kind}`, `stage ${point.stage}`, `level ${levelOf(point)}`].some((key) => off.has(key)));
  const levels = (["dram", "l2", "l1"] as const).filter((level) => roofline.points.some((point) => levelOf(point) === level));
  const most = Math.max(1, ...roofline.points.map((point) => point.time_ns));
  const radius = (point: Point): number => 3 + 11 * Math.sqrt(point.time_ns / most);
  const at = (point: Point) => ({ x: frame.x.toPixel(point.intensity), y: frame.y.toPixel(point.flops_per_s) });
  const anchors = points.map((point) => ({ ...at(point), radius: radius(point), text: labelOf(point) }));
  const area = { x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top };
  const labels = width > 0 ? placeLabels(anchors, area, width < 500 ? 5 : mostLabels, roofLabelAreas(roofline, frame)) : [];
  const describe = (point: Point): string => [
    `${clipped(visible(point.name))}, ${point.kind}${point.stage === "" ? "" : ` in ${visible(point.stage)}`}:`,
    `${rate(point.flops_per_s, "FLOP/s")} at ${digits(point.intensity)} FLOP/B, ${far(point)};`,
    `${time(point.time_ns)} in the run; FLOPs and bytes: ${sourceText(point)}`,
  ].join(" ");
  const nearest = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const away = (point: Point) => Math.hypot(at(point).x - event.clientX + box.left, at(point).y - event.clientY + box.top);
    const best = points.reduce<Point | null>((found, point) => (!found || away(point) < away(found) ? point : found), null);
    setPointed(best && away(best) <= reach ? best : null);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") setWalked(null);
    if (!step || points.length === 0) return;
    event.preventDefault();
    setPointed(null);
    setWalked(points[(points.indexOf(walked!) + step + points.length) % points.length]!);
  };
  const toggle = (key: string) => setOff((now) => new Set(now.has(key) ? [...now].filter((each) => each !== key) : [...now, key]));
  return (
    <div class="picture p-roofline" ref={setElement} role="region" aria-label={`roofline of ${visible(roofline.device)}`}>
      {flopRoofs(roofline).length > 1 && (
        <div class="p-bar"><label class="p-group">held against
          <select value={roof?.name ?? ""} onChange={(event) => setWanted(event.currentTarget.value)}>
            {flopRoofs(roofline).map((each) => <option key={each.name} value={each.name}>{visible(each.name)}</option>)}
          </select></label></div>
      )}
      <RooflineLegend kinds={[...new Set(roofline.points.map((point) => point.kind))]} levels={levels} off={off} onToggle={toggle}
                      stages={[...new Set(roofline.points.map((point) => point.stage))]} />
      {width > 0 && (
        <svg width={width} height={height} tabIndex={0} role="application" onKeyDown={onKeyDown}
             aria-label="roofline: arrow keys go through the points, most time first"
             onPointerMove={nearest} onPointerDown={nearest} onPointerLeave={() => setPointed(null)} onBlur={() => setWalked(null)}>
          <Axes frame={frame} />
          <Roofs roofline={roofline} frame={frame} chosen={roof} />
          {[...points].reverse().map((point, index) => (
            <path key={index} class={`point${levelOf(point) ? " counted" : ""}${point === chosen ? " chosen" : ""}`} {...paint(point)}
                  d={shapePath(shapes[point.kind] ?? "circle", radius(point))}
                  transform={`translate(${at(point).x.toFixed(1)} ${at(point).y.toFixed(1)})`} />
          ))}
          {labels.map(({ x, y, height: high, anchor }, index) => (
            <text key={index} class="label" x={x} y={y + high - 3}>{anchor.text}</text>
          ))}
        </svg>
      )}
      {chosen && <Tip x={at(chosen).x} y={at(chosen).y + 60} width={width}>{describe(chosen)}</Tip>}
      <p class="p-spoken" aria-live="polite">{chosen ? describe(chosen) : ""}</p>
      <p class="p-muted">
        The area of a mark is its time in the run. Shape: kind; colour: stage.
        {levels.length > 0 && " Outlines: FLOPs and bytes that the hardware counted, of the level that the line names; filled: of the model."}
      </p>
      <DataTable title="Points as a table" columns={columns}
        rows={() => points.map((point) => [clipped(visible(point.name)), point.kind, visible(point.stage), digits(point.intensity),
          rate(point.flops_per_s, "FLOP/s"), far(point), time(point.time_ns), sourceText(point)])} />
    </div>
  );
}

const labelOf = (point: Point): string => {
  const level = point.kind === "stage" ? levelOf(point) : null;
  return shorten(shortName(visible(point.name))) + (level ? `, ${levelNames[level]}` : "");
};

// Counted points are outlines, so that both can be seen where they lie on each other.
function paint(point: Point) {
  const level = levelOf(point), colour = stageColour(point.stage);
  return level ? { fill: "none", style: { stroke: colour, strokeDasharray: levelDashes[level] } } : { fill: colour };
}

function frameOf(roofline: RooflineChartProps["roofline"], width: number, height: number): Frame {
  const { x: xs, y: ys } = extents(roofline);
  const [left, right, top, bottom] = [46, Math.max(60, width - 8), 20, height - 36];
  return { left, right, top, bottom, xs, ys, x: logScale(xs, [left, right]), y: logScale(ys, [bottom, top]) };
}
