import { extentOf, linePath } from "./charts/series";
import "./pictures.css";
import type { SparklineProps } from "./props";
import { linearScale } from "./scale";

const width = 120, height = 28, margin = 3;

// Lowest at the bottom, highest at the top: it shows the course, the numbers stand beside it.
export function Sparkline({ values, label }: SparklineProps) {
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
