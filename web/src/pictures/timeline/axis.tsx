import { linearScale, type Range, roundValues } from "../scale";
import { moment, timeLabels } from "../units";

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
