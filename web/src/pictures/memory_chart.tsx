import type { MemoryChartProps } from "./props";

export function MemoryChart(_: MemoryChartProps) {
  return <p class="empty">MemoryChart: not drawn yet.</p>;
}
