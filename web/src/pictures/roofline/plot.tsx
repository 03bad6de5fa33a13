// Axes and roofs. Both axes are logarithmic.
import { visible } from "../../visible";
import { powersOfTen, type Range, type Scale } from "../scale";
import { digits, rate } from "../units";
import { byteRoofs, flopRoofs, memoryRoof, ridge, type Roof } from "./roofs";
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

export function Roofs({ roofline, frame, chosen }: { roofline: Roofline; frame: Frame; chosen: Roof | null }) {
  const memory = memoryRoof(roofline);
  const highest = Math.max(...flopRoofs(roofline).map((roof) => roof.flops_per_s!), 0) || frame.ys[1];
  const fastest = Math.max(...byteRoofs(roofline).map((roof) => roof.bytes_per_s!), 0);
  return (
    <g>
      {byteRoofs(roofline).map((roof) => <Slope key={roof.name} roof={roof} frame={frame} highest={highest} />)}
      {flopRoofs(roofline).map((roof) => (
        <Ceiling key={roof.name} roof={roof} frame={frame} memory={memory} chosen={roof === chosen}
                 begin={fastest > 0 ? Math.max(frame.xs[0], roof.flops_per_s! / fastest) : frame.xs[0]} />
      ))}
    </g>
  );
}

// A bandwidth: as many FLOP/s as the bytes that it brings allow.
function Slope({ roof, frame: { x, y, xs, ys }, highest }: { roof: Roof; frame: Frame; highest: number }) {
  const rise = roof.bytes_per_s!;
  const begin = Math.max(xs[0], ys[0] / rise), end = highest / rise;
  if (!(end > begin)) return null;
  const at = begin * 1.3;
  const angle = -((Math.atan2(y.toPixel(1) - y.toPixel(10), x.toPixel(10) - x.toPixel(1)) * 180) / Math.PI);
  const place = `translate(${x.toPixel(at).toFixed(1)} ${(y.toPixel(at * rise) - 5).toFixed(1)}) rotate(${angle.toFixed(1)})`;
  return (
    <g>
      <line class="roof" x1={x.toPixel(begin)} y1={y.toPixel(begin * rise)} x2={x.toPixel(end)} y2={y.toPixel(highest)} />
      <text class="label" transform={place}>{said(roof, "B/s", rise)}</text>
    </g>
  );
}

interface CeilingProps { roof: Roof; frame: Frame; memory: Roof | null; chosen: boolean; begin: number }

function Ceiling({ roof, frame: { x, y, xs, right, bottom }, memory, chosen, begin }: CeilingProps) {
  const level = y.toPixel(roof.flops_per_s!);
  const knee = memory ? x.toPixel(ridge(roof, memory)) : 0;
  return (
    <g>
      <line class={chosen ? "roof chosen" : "roof"} x1={x.toPixel(begin)} x2={right} y1={level} y2={level} />
      <text class="label" x={right - 3} y={level - 4} text-anchor="end">{said(roof, "FLOP/s", roof.flops_per_s!)}</text>
      {memory && ridge(roof, memory) > xs[0] && (
        <>
          <circle class="ridge" cx={knee} cy={level} r={3} />
          {chosen && <line class="mark" x1={knee} x2={knee} y1={level} y2={bottom} />}
          {chosen && <text class="muted" x={knee + 4} y={bottom - 5}>ridge {digits(ridge(roof, memory))} FLOP/B</text>}
        </>
      )}
    </g>
  );
}
