// Axes and roofs. Both axes are logarithmic.
import { visible } from "../../visible";
import { labelHeight, leaning, type Rect, textWidth } from "../labels";
import { powersOfTen, type Range, type Scale } from "../scale";
import { digits, rate } from "../units";
import { byteRoofs, ceilings, flopRoofs, memoryRoof, ridge, type Roof } from "./roofs";
import type { Roofline } from "../../data";

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

export interface SlopeLabel { text: string; x: number; y: number; angle: number }

// Along the line, near its begin.
function slopeLabel(roof: Roof, { x, y, xs, ys }: Frame): SlopeLabel {
  const at = 1.3 * Math.max(xs[0], ys[0] / roof.bytes_per_s!);
  const angle = -((Math.atan2(y.toPixel(1) - y.toPixel(10), x.toPixel(10) - x.toPixel(1)) * 180) / Math.PI);
  return { text: said(roof, "B/s", roof.bytes_per_s!), x: x.toPixel(at), y: y.toPixel(at * roof.bytes_per_s!) - 5, angle };
}

// What the names of the roofs cover, for labels of points to keep off.
export function roofLabelAreas(roofline: Roofline, frame: Frame): Rect[] {
  const slopes = byteRoofs(roofline).map((roof) => slopeLabel(roof, frame)).flatMap(({ text, x, y, angle }) => leaning(text, x, y, angle));
  const flat = ceilings(roofline).map(({ roofs, flops }) => {
    const width = textWidth(saidTogether(roofs));
    return { x: frame.right - 3 - width, y: frame.y.toPixel(flops) - 4 - labelHeight, width, height: labelHeight };
  });
  return [...slopes, ...flat];
}

// A bandwidth: as many FLOP/s as the bytes that it brings allow.
function Slope({ roof, frame, highest }: { roof: Roof; frame: Frame; highest: number }) {
  const { x, y, xs, ys } = frame;
  const rise = roof.bytes_per_s!;
  const begin = Math.max(xs[0], ys[0] / rise), end = highest / rise;
  if (!(end > begin)) return null;
  const label = slopeLabel(roof, frame);
  return (
    <g>
      <line class="roof" x1={x.toPixel(begin)} y1={y.toPixel(begin * rise)} x2={x.toPixel(end)} y2={y.toPixel(highest)} />
      <text class="label" transform={`translate(${label.x.toFixed(1)} ${label.y.toFixed(1)}) rotate(${label.angle.toFixed(1)})`}>{label.text}</text>
    </g>
  );
}

interface CeilingProps { roofs: Roof[]; frame: Frame; memory: Roof | null; chosen: boolean; begin: number }

function Ceiling({ roofs, frame: { x, y, xs, right, bottom }, memory, chosen, begin }: CeilingProps) {
  const roof = roofs[0]!;
  const level = y.toPixel(roof.flops_per_s!);
  const knee = memory ? x.toPixel(ridge(roof, memory)) : 0;
  return (
    <g>
      <line class={chosen ? "roof chosen" : "roof"} x1={x.toPixel(begin)} x2={right} y1={level} y2={level} />
      <text class="label" x={right - 3} y={level - 4} text-anchor="end">{saidTogether(roofs)}</text>
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
