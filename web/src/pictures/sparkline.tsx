import type { SparklineProps } from "./props";

export function Sparkline(_: SparklineProps) {
  return <p class="empty">Sparkline: not drawn yet.</p>;
}
