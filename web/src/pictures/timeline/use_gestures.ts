// Wheel, drag and fingers on the lanes. With the mouse a drag marks a part to zoom to, with Shift it moves the window;
// one finger moves, two zoom; up and down stay with the page.
import { useRef, useState } from "preact/hooks";
import type { Range } from "../scale";
import { pan, pinch, zoom } from "./view";

export interface Surface { window: Range; limits: Range; width: number; left: number }  // left: where the plot begins
interface Drag { kind: "mark" | "pan"; x: number; window: Range; moved: boolean }

const clickReach = 4;

export function useGestures(surface: Surface, onWindow: (window: Range) => void, onClick: (event: PointerEvent) => void) {
  const [mark, setMark] = useState<Range | null>(null);  // pixels
  const drag = useRef<Drag | null>(null);
  const fingers = useRef(new Map<number, { x: number; time: number }>());
  const { window, limits, width, left } = surface;
  const pixelOf = (event: MouseEvent) => event.clientX - (event.currentTarget as Element).getBoundingClientRect().left - left;
  const timeOf = (pixel: number) => window[0] + (pixel / width) * (window[1] - window[0]);

  const onPointerDown = (event: PointerEvent) => {
    const x = pixelOf(event);
    if (x < 0 || event.button > 1 || (event.target as Element).closest("button")) return;
    if (event.pointerType === "touch") fingers.current.set(event.pointerId, { x, time: timeOf(x) });
    const panning = event.pointerType === "touch" || event.shiftKey || event.button === 1;
    drag.current = { kind: panning ? "pan" : "mark", x, window, moved: fingers.current.size > 1 };
    if (event.pointerType !== "touch") (event.currentTarget as Element).setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent) => {
    const x = pixelOf(event);
    const finger = fingers.current.get(event.pointerId);
    if (finger) finger.x = x;
    if (fingers.current.size === 2) {
      const [one, two] = [...fingers.current.values()].sort((a, b) => a.time - b.time);
      onWindow(pinch([one!.time, two!.time], [one!.x, two!.x], width, limits));
      return;
    }
    const now = drag.current;
    if (!now) return;
    if (Math.abs(x - now.x) > clickReach) now.moved = true;
    if (!now.moved) return;
    if (now.kind === "mark") setMark([Math.max(0, Math.min(now.x, x)), Math.min(width, Math.max(now.x, x))]);
    else onWindow(pan(now.window, ((now.x - x) / width) * (now.window[1] - now.window[0]), limits));
  };
  const onPointerUp = (event: PointerEvent) => {
    fingers.current.delete(event.pointerId);
    const now = drag.current;
    drag.current = null;
    setMark(null);
    if (!now) return;
    if (!now.moved) onClick(event);
    else if (now.kind === "mark" && mark) onWindow([timeOf(mark[0]), timeOf(mark[1])]);
  };
  const onPointerCancel = (event: PointerEvent) => {
    fingers.current.delete(event.pointerId);
    drag.current = null;
    setMark(null);
  };
  const onWheel = (event: WheelEvent) => {
    const inUse = (event.currentTarget as Element).contains(document.activeElement);
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !event.metaKey && !inUse && !sideways) return;  // the page scrolls
    event.preventDefault();
    const by = event.deltaMode === 1 ? 16 : 1;
    if (sideways && !event.ctrlKey) {
      onWindow(pan(window, (((event.deltaX || event.deltaY) * by) / width) * (window[1] - window[0]), limits));
    } else {
      onWindow(zoom(window, timeOf(pixelOf(event)), Math.exp(event.deltaY * by * (event.ctrlKey ? 0.01 : 0.002)), limits));
    }
  };
  return { mark, handlers: { onPointerDown, onPointerMove, onPointerUp, onPointerCancel, onWheel }, pixelOf, timeOf, dragging: drag };
}
