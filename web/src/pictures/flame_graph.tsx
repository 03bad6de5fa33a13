import type { FlameGraphProps } from "./props";

export function FlameGraph(_: FlameGraphProps) {
  return <p class="empty">FlameGraph: not drawn yet.</p>;
}
