import type { TimelineProps } from "./props";

export function Timeline(_: TimelineProps) {
  return <p class="empty">Timeline: not drawn yet.</p>;
}
