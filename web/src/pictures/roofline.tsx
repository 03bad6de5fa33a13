// Stages, operators, modules and kernels under the roofs of the device.
import { toggled } from "./drawing";
import { useMemo, useState } from "preact/hooks";
import type { Roofline } from "../data";
import { column, DataTable, type Description } from "../table";
import { clipped, digits, rate, time, visible } from "../text";
import { Tip, useWidth } from "./canvas";
import {
  categoryVariable, labelHeight, leaning, logScale, overlap, placeLabels, powersOfTen, type Range, type Rect, type Scale, type Shape, ShapeKey,
  shapePath, stageCategory, textWidth,
} from "./drawing";
import {
  bandwidthRoof, byteRoofs, ceilings, chooseRoof, distance, extents, flopRoofs, type Level, levelNames, levelOf, memoryRoof, type Point,
  ridge, type Roof, sourceText,
} from "./roofs";

const mostLabels = 12, reach = 24;
const table: Description = { name: "roofline", title: "Points as a table", columns: [
  column("name", "name", "name"), column("word", "kind", "kind"), column("word", "stage", "stage"),
  column("measure", "intensity", "intensity", "", { unit: "FLOP/B" }), column("measure", "FLOP/s", "flops_per_s", "", { unit: "FLOP/s" }),
  column("text", "of the roof", "far"), column("ns", "time", "time_ns"), column("text", "FLOPs and bytes from", "from"),
] };
const shorten = (text: string): string => (text.length > 34 ? `${text.slice(0, 33)}…` : text);

export function RooflineChart({ roofline, type }: { roofline: Roofline; type?: string | null }) {
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
  const names = width > 0 ? roofLabels(roofline, frame, roof) : [];
  const taken = [...names.flatMap((name) => name.areas), ...ridgeArea(roofline, frame, roof)];
  const labels = width > 0 ? placeLabels(anchors, area, width < 500 ? 5 : mostLabels, taken) : [];
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
  const toggle = (key: string) => setOff((now) => toggled(now, key));
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
          {names.map(({ text, x, y, angle, anchor }) => (
            <text key={text} class="label" text-anchor={anchor} transform={`translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${angle.toFixed(1)})`}>
              {text}
            </text>
          ))}
          {[...points].reverse().map((point, index) => (
            <path key={index} class={`point${levelOf(point) ? " counted" : ""}${point === chosen ? " chosen" : ""}`} {...paint(point)}
                  d={shapePath(shapes[point.kind] ?? "circle", radius(point))}
                  transform={`translate(${at(point).x.toFixed(1)} ${at(point).y.toFixed(1)})`} />
          ))}
          {labels.map(({ line }, index) => line && <line key={index} class="leader" x1={line[0]} y1={line[1]} x2={line[2]} y2={line[3]} />)}
          {labels.map(({ x, y, height: high, anchor }, index) => (
            <text key={index} class="label" x={x} y={y + high - 3}>{anchor.text}</text>
          ))}
        </svg>
      )}
      {chosen && <Tip x={at(chosen).x} y={at(chosen).y + 60} width={width}>{describe(chosen)}</Tip>}
      <p class="p-spoken" aria-live="polite">{chosen ? describe(chosen) : ""}</p>
      <p class="p-muted">
        The area of a mark is its time in the run. Shape: kind; colour: stage.
        {width > 0 && labels.length < points.length &&
          ` ${labels.length} of ${points.length} points have their names beside them; point at one for its name.`}
        {levels.length > 0 && " Outlines: FLOPs and bytes that the hardware counted, of the level that the line names; filled: of the model."}
      </p>
      <DataTable description={table}
                 rows={() => points.map((point) => ({ ...point, name: clipped(point.name), far: far(point), from: sourceText(point) }))} />
    </div>
  );
}

const labelOf = (point: Point): string => {
  const level = point.kind === "stage" ? levelOf(point) : null;
  return shorten(visible(point.short_name ?? point.name)) + (level ? `, ${levelNames[level]}` : "");
};

// Counted points are outlines, so that both can be seen where they lie on each other.
function paint(point: Point) {
  const level = levelOf(point), colour = stageColour(point.stage);
  return level ? { fill: "none", style: { stroke: colour, strokeDasharray: levelDashes[level] } } : { fill: colour };
}

function frameOf(roofline: Roofline, width: number, height: number): Frame {
  const { x: xs, y: ys } = extents(roofline);
  const [left, right, top, bottom] = [46, Math.max(60, width - 8), 20, height - 36];
  return { left, right, top, bottom, xs, ys, x: logScale(xs, [left, right]), y: logScale(ys, [bottom, top]) };
}

// Axes and roofs. Both axes are logarithmic.
export interface Frame { left: number; right: number; top: number; bottom: number; x: Scale; y: Scale; xs: Range; ys: Range }

export function Axes({ frame }: { frame: Frame }) {
  const { left, right, top, bottom, x, y, xs, ys } = frame;
  const every = Math.max(1, Math.ceil(powersOfTen(xs).length / Math.max(2, (right - left) / 60)));
  return (
    <g>
      {powersOfTen(xs).map((value, index) => (
        <g key={value}>
          <line class="grid" x1={x.toPixel(value)} x2={x.toPixel(value)} y1={top} y2={bottom} />
          {index % every === 0 && <text x={x.toPixel(value)} y={bottom + 14} text-anchor="middle">{digits(value)}</text>}
        </g>
      ))}
      {powersOfTen(ys).map((value) => (
        <g key={value}>
          <line class="grid" x1={left} x2={right} y1={y.toPixel(value)} y2={y.toPixel(value)} />
          <text x={left - 5} y={y.toPixel(value) + 4} text-anchor="end">{rate(value, "")}</text>
        </g>
      ))}
      <text class="muted" x={(left + right) / 2} y={bottom + 30} text-anchor="middle">FLOP per byte of memory</text>
      <text class="muted" x={12} y={top - 6}>FLOP/s</text>
    </g>
  );
}

const said = (roof: Roof, unit: string, value: number): string => `${visible(roof.name)}: ${rate(value, unit)}, ${roof.source}`;

const saidTogether = (roofs: Roof[]): string =>
  said({ ...roofs[0]!, name: roofs.map((roof) => roof.name).join(", ") }, "FLOP/s", roofs[0]!.flops_per_s!);

export function Roofs({ roofline, frame, chosen }: { roofline: Roofline; frame: Frame; chosen: Roof | null }) {
  const memory = memoryRoof(roofline);
  const highest = Math.max(...flopRoofs(roofline).map((roof) => roof.flops_per_s!), 0) || frame.ys[1];
  const fastest = Math.max(...byteRoofs(roofline).map((roof) => roof.bytes_per_s!), 0);
  return (
    <g>
      {byteRoofs(roofline).map((roof) => <Slope key={roof.name} roof={roof} frame={frame} highest={highest} />)}
      {ceilings(roofline).map(({ roofs, flops }) => (
        <Ceiling key={flops} roofs={roofs} frame={frame} memory={memory} chosen={chosen !== null && roofs.includes(chosen)}
                 begin={fastest > 0 ? Math.max(frame.xs[0], flops / fastest) : frame.xs[0]} />
      ))}
    </g>
  );
}

export interface RoofLabel { text: string; x: number; y: number; angle: number; anchor: "start" | "end"; areas: Rect[] }

// Along the line, near its begin.
function slopeLabel(roof: Roof, { x, y, xs, ys }: Frame): RoofLabel {
  const at = 1.3 * Math.max(xs[0], ys[0] / roof.bytes_per_s!), text = said(roof, "B/s", roof.bytes_per_s!);
  const angle = -((Math.atan2(y.toPixel(1) - y.toPixel(10), x.toPixel(10) - x.toPixel(1)) * 180) / Math.PI);
  const place = { x: x.toPixel(at), y: y.toPixel(at * roof.bytes_per_s!) - 5 };
  return { text, ...place, angle, anchor: "start", areas: leaning(text, place.x, place.y, angle) };
}

// Above its line at the right, or further to the left where another name is.
function ceilingLabel(roofs: Roof[], frame: Frame, taken: Rect[]): RoofLabel | null {
  const text = saidTogether(roofs), width = textWidth(text), y = frame.y.toPixel(roofs[0]!.flops_per_s!) - 4;
  for (let right = frame.right - 3; right - width > frame.left; right -= 20) {
    const area = { x: right - width, y: y - labelHeight, width, height: labelHeight + 2 };
    if (!taken.some((other) => overlap(other, area))) return { text, x: right, y, angle: 0, anchor: "end", areas: [area] };
  }
  return null;
}

// The names of the roofs, that of the chosen one first, none over another: where one finds no place, only its line says it.
export function roofLabels(roofline: Roofline, frame: Frame, chosen: Roof | null): RoofLabel[] {
  const labels: RoofLabel[] = [];
  const taken = () => labels.flatMap(({ areas }) => areas);
  for (const roof of byteRoofs(roofline)) {
    const label = slopeLabel(roof, frame);
    if (!label.areas.some((area) => taken().some((other) => overlap(area, other)))) labels.push(label);
  }
  const isChosen = ({ roofs }: { roofs: Roof[] }) => chosen !== null && roofs.includes(chosen);
  for (const { roofs } of ceilings(roofline).sort((a, b) => Number(isChosen(b)) - Number(isChosen(a)))) {
    const label = ceilingLabel(roofs, frame, taken());
    if (label) labels.push(label);
  }
  return labels;
}

// What the name of the chosen roof's ridge covers.
function ridgeArea(roofline: Roofline, { x, right, bottom }: Frame, roof: Roof | null): Rect[] {
  const memory = memoryRoof(roofline);
  if (!roof || !memory) return [];
  const knee = x.toPixel(ridge(roof, memory)), width = textWidth(`ridge ${digits(ridge(roof, memory))} FLOP/B`) + 4;
  return [{ x: knee > right - 110 ? knee - width : knee, y: bottom - 5 - labelHeight, width, height: labelHeight + 2 }];
}

// A bandwidth: as many FLOP/s as the bytes that it brings allow.
function Slope({ roof, frame, highest }: { roof: Roof; frame: Frame; highest: number }) {
  const { x, y, xs, ys } = frame;
  const rise = roof.bytes_per_s!;
  const begin = Math.max(xs[0], ys[0] / rise), end = highest / rise;
  if (!(end > begin)) return null;
  return (
    <line class="roof" x1={x.toPixel(begin)} y1={y.toPixel(begin * rise)} x2={x.toPixel(end)} y2={y.toPixel(highest)}>
      <title>{said(roof, "B/s", rise)}</title>
    </line>
  );
}

interface CeilingProps { roofs: Roof[]; frame: Frame; memory: Roof | null; chosen: boolean; begin: number }

function Ceiling({ roofs, frame: { x, y, xs, right, bottom }, memory, chosen, begin }: CeilingProps) {
  const roof = roofs[0]!;
  const level = y.toPixel(roof.flops_per_s!);
  const knee = memory ? x.toPixel(ridge(roof, memory)) : 0;
  return (
    <g>
      <line class={chosen ? "roof chosen" : "roof"} x1={x.toPixel(begin)} x2={right} y1={level} y2={level}>
        <title>{saidTogether(roofs)}</title>
      </line>
      {memory && ridge(roof, memory) > xs[0] && (
        <>
          <circle class="ridge" cx={knee} cy={level} r={3} />
          {chosen && <line class="mark" x1={knee} x2={knee} y1={level} y2={bottom} />}
          {chosen && <text class="muted" x={knee + (knee > right - 110 ? -4 : 4)} y={bottom - 5}
                           text-anchor={knee > right - 110 ? "end" : "start"}>ridge {digits(ridge(roof, memory))} FLOP/B</text>}
        </>
      )}
    </g>
  );
}

export const shapes: Record<Point["kind"], Shape> = { stage: "square", operator: "circle", module: "triangle", kernel: "diamond" };
export const stageColour = (stage: string): string => (stage === "" ? "var(--p-muted)" : `var(${categoryVariable(stageCategory(stage))})`);

// Counted points are outlines: unbroken of memory, dashed of the L2 cache, dotted of L1.
export const levelDashes: Record<Level, string> = { dram: "none", l2: "4 2", l1: "1.5 1.5" };

interface LegendProps { kinds: string[]; levels: Level[]; stages: string[]; off: ReadonlySet<string>; onToggle: (key: string) => void }

function LevelKey({ level }: { level: Level }) {
  return (
    <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden="true">
      <path d={shapePath("square", 5)} fill="none" stroke="currentColor" stroke-width={1.8} stroke-dasharray={levelDashes[level]} />
    </svg>
  );
}

export function RooflineLegend({ kinds, levels, stages, off, onToggle }: LegendProps) {
  return (
    <div class="p-legend" role="group" aria-label="what is shown">
      {kinds.map((kind) => (
        <button key={kind} type="button" aria-pressed={!off.has(`kind ${kind}`)} onClick={() => onToggle(`kind ${kind}`)}>
          <ShapeKey shape={shapes[kind as Point["kind"]] ?? "circle"} />{visible(kind)}
        </button>
      ))}
      {levels.map((level) => (
        <button key={level} type="button" aria-pressed={!off.has(`level ${level}`)} onClick={() => onToggle(`level ${level}`)}>
          <LevelKey level={level} />counted, {levelNames[level]}
        </button>
      ))}
      {stages.map((stage) => (
        <button key={stage} type="button" aria-pressed={!off.has(`stage ${stage}`)} onClick={() => onToggle(`stage ${stage}`)}>
          <span class="p-swatch" style={{ background: stageColour(stage) }} />{stage === "" ? "no stage" : visible(stage)}
        </button>
      ))}
    </div>
  );
}
