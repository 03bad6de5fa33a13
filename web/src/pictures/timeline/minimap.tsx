// The whole run in a small strip, and where the window lies in it. For the pointer only: keys and buttons do the same.
import { useLayoutEffect, useRef } from "preact/hooks";
import { prepare } from "../canvas";
import { clamp, type Range } from "../scale";
import type { Theme } from "../theme";
import { drawLane } from "./draw";
import type { Patch } from "./patches";
import { pan } from "./view";

const rowHeight = 12;

interface MinimapProps { overview: Patch; window: Range; width: number; theme: Theme; onWindow: (window: Range) => void }

export function Minimap({ overview, window, width, theme, onWindow }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const grabbed = useRef<number | null>(null);
  const limits: Range = [overview.from, overview.to];
  const lanes = [...overview.lanes].filter(([, { lane }]) => lane.kind === "stages" || lane.kind === "stream").slice(0, 3);
  const height = Math.max(1, lanes.length) * rowHeight;
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, width, height, theme.printing);
    lanes.forEach(([key], row) => {
      context?.setTransform(context.getTransform().a, 0, 0, context.getTransform().a, 0, context.getTransform().a * row * rowHeight);
      const style = { window: limits, width, height: rowHeight, theme, colourBy: "stage" as const, found: null, selected: null };
      if (context) drawLane(context, [{ from: overview.from, to: overview.to, patch: overview }], key, style);
    });
  }, [overview, width, theme]);
  const perNs = width / Math.max(1, limits[1] - limits[0]);
  const [left, right] = [clamp((window[0] - limits[0]) * perNs, 0, width), clamp((window[1] - limits[0]) * perNs, 0, width)];
  const timeAt = (event: PointerEvent) =>
    limits[0] + (event.clientX - (event.currentTarget as Element).getBoundingClientRect().left) / perNs;
  const move = (event: PointerEvent) => {
    if (grabbed.current === null) return;
    onWindow(pan(window, timeAt(event) - grabbed.current - window[0], limits));
  };
  return (
    <div class="p-map" style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true"
         onPointerDown={(event) => {
           (event.currentTarget as Element).setPointerCapture(event.pointerId);
           const time = timeAt(event);
           const inside = time >= window[0] && time <= window[1];
           grabbed.current = inside ? time - window[0] : (window[1] - window[0]) / 2;
           move(event);
         }}
         onPointerMove={move} onPointerUp={() => (grabbed.current = null)} onPointerCancel={() => (grabbed.current = null)}>
      <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} />
      <div class="p-outside" style={{ left: 0, width: `${left}px` }} />
      <div class="p-outside" style={{ left: `${right}px`, right: 0 }} />
      <div class="p-window" style={{ left: `${left}px`, width: `${Math.max(4, right - left)}px` }} />
    </div>
  );
}
