import type { ComponentChildren } from "preact";

// Beside the pointer, on the side that has room. x and width in pixels of the picture.
export function Tip({ x, y, width, children }: { x: number; y: number; width: number; children: ComponentChildren }) {
  const style = x < width / 2 ? { left: `${x + 14}px`, top: `${y + 14}px` } : { right: `${width - x + 14}px`, top: `${y + 14}px` };
  return <div class="p-tip" style={style} aria-hidden="true">{children}</div>;
}
