import type { RooflineChartProps } from "./props";

export function RooflineChart(_: RooflineChartProps) {
  return <p class="empty">RooflineChart: not drawn yet.</p>;
}
