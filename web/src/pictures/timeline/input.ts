// Which part of the time is in view. Times are nanoseconds after the first event of the run.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunData, Timeline } from "../../data";
import { clamp, type Range } from "../drawing";
import { coarseFirst, factsOf, makePatch, neighbour, type Patch, type Segment, sliceAt, type SliceRef } from "./patches";

export const leastSpanNs = 10;

// Moves and shortens a window so that it lies inside the limits.
export function fit([from, to]: Range, limits: Range): Range {
  const whole = Math.max(limits[1] - limits[0], 1);
  const span = clamp(to - from, Math.min(leastSpanNs, whole), whole);
  const middle = (from + to) / 2;
  const begin = clamp(span === to - from ? from : middle - span / 2, limits[0], limits[0] + whole - span);
  return [begin, begin + span];
}

// factor < 1 zooms in; the time at `fixed` stays where it is.
export function zoom([from, to]: Range, fixed: number, factor: number, limits: Range): Range {
  const whole = Math.max(limits[1] - limits[0], 1);
  const span = clamp((to - from) * factor, Math.min(leastSpanNs, whole), whole);
  const share = to === from ? 0.5 : (fixed - from) / (to - from);
  return fit([fixed - share * span, fixed + (1 - share) * span], limits);
}

export const pan = ([from, to]: Range, shift: number, limits: Range): Range => fit([from + shift, to + shift], limits);

// A slice with some of its surroundings.
export function around([from, to]: Range, limits: Range): Range {
  const margin = Math.max(to - from, 1) * 0.15;
  return fit([from - margin, to + margin], limits);
}

// Two fingers at these times and pixels before, at these pixels now.
export function pinch(times: Range, pixels: Range, width: number, limits: Range): Range {
  const apart = Math.max(Math.abs(pixels[1] - pixels[0]), 8) * (pixels[1] < pixels[0] ? -1 : 1);
  const perPixel = Math.abs((times[1] - times[0]) / apart);
  const from = times[0] - pixels[0] * perPixel;
  return fit([from, from + width * perPixel], limits);
}

export interface KeyContext {
  window: Range; limits: Range; parts: Segment[]; selected: SliceRef | null;
  onWindow: (window: Range) => void; onSelect: (slice: SliceRef | null) => void; marked: boolean; onMark: (range: Range | null) => void;
  onZoomTo: (slice: SliceRef) => void;
}

const zoomIn = 0.6, panBy = 0.2;

// Window keys work everywhere in the picture, slice keys on the lane that has the focus.
export function useKeys(context: KeyContext): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = (event.target as Element).closest<HTMLElement>("[data-lane]");
    const next = windowKey(event.key, context);
    if (next) context.onWindow(next);
    else if (event.key === "x") context.onMark(context.window);
    else if (event.key === "Escape" && context.marked && !context.selected) context.onMark(null);
    else if (event.key === "ArrowDown") focusLane(event.currentTarget as Element, row, 1);
    else if (event.key === "ArrowUp") focusLane(event.currentTarget as Element, row, -1);
    else if (!row || !sliceKey(event.key, row.dataset["lane"]!, context)) return;
    event.preventDefault();
  };
}

// w, a, s and d also work while the pointer is over the picture, unless something is being typed.
export function useHoverKeys(element: HTMLElement | null, context: KeyContext): void {
  const now = useRef(context);
  now.current = context;
  useEffect(() => {
    if (!element) return;
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as Element, typing = target.closest("input, select, textarea, [role=application]");
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing || !element.matches(":hover")) return;
      const next = /^[wasd]$/i.test(event.key) ? windowKey(event.key, now.current) : null;
      if (next) { now.current.onWindow(next); event.preventDefault(); }
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [element]);
}

export function windowKey(key: string, { window, limits }: KeyContext): Range | null {
  const middle = (window[0] + window[1]) / 2, span = window[1] - window[0];
  switch (key) {
    case "w": case "W": case "+": case "=": return zoom(window, middle, zoomIn, limits);
    case "s": case "S": case "-": return zoom(window, middle, 1 / zoomIn, limits);
    case "a": case "A": case "ArrowLeft": return pan(window, -panBy * span, limits);
    case "d": case "D": case "ArrowRight": return pan(window, panBy * span, limits);
    case "0": case "Home": return fit(limits, limits);
    default: return null;
  }
}

function sliceKey(key: string, lane: string, context: KeyContext): boolean {
  const { window, parts, selected } = context;
  const mine = selected?.lane === lane ? selected : null;
  if (key === "Escape") context.onSelect(null);
  else if (key === "Enter" && mine) context.onZoomTo(mine);
  else if (key === "Enter") {
    const middle = (window[0] + window[1]) / 2;
    context.onSelect(sliceAt(parts, lane, middle, 0) ?? neighbour(parts, lane, middle, 1) ?? neighbour(parts, lane, middle, -1));
  } else if (key === "n" || key === "p") {
    const from = mine ? factsOf(mine).begin : key === "n" ? window[0] - 1 : window[1];
    const next = neighbour(parts, lane, from, key === "n" ? 1 : -1);
    if (next) context.onSelect(next);
  } else return false;
  return true;
}

function focusLane(lanes: Element, row: HTMLElement | null, step: number): void {
  const all = [...lanes.querySelectorAll<HTMLElement>("[data-lane]")];
  all[Math.max(0, Math.min(all.length - 1, (row ? all.indexOf(row) : -step) + step))]?.focus();
}

// Wheel, drag and fingers on the lanes. With the mouse a drag selects a part of the time, with Shift it moves the window;
// one finger moves, two zoom; up and down stay with the page.
export interface Surface { window: Range; limits: Range; width: number; left: number }  // left: where the plot begins
interface Drag { kind: "mark" | "pan"; x: number; window: Range; moved: boolean }

const clickReach = 4;

export function useGestures(surface: Surface, onWindow: (window: Range) => void, onMark: (range: Range) => void,
                            onClick: (event: PointerEvent) => void) {
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
    else if (now.kind === "mark" && mark) onMark([timeOf(mark[0]), timeOf(mark[1])]);
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

// The patches of a timeline: what came with the run, and, where a server answers, the window in view in full detail.
// Absolute times; null where only the data of the page are there.
export type Load = ((window: Range, width: number) => Promise<Timeline>) | null;

const settleMs = 100;     // no question while the window still moves
const surroundings = 0.25;  // of the window on each side, so that a small pan needs no question

// Whether an answer still serves the window: covers it, and is not much coarser.
export function serves(patch: Patch | null, [from, to]: Range): boolean {
  if (!patch || patch.from > from || patch.to < to) return false;
  return patch.to - patch.from <= 2.2 * (to - from);
}

// What to ask for: the window with its surroundings.
export function askFor([from, to]: Range, limits: Range): Range {
  const margin = (to - from) * surroundings;
  const [begin, end] = [Math.max(limits[0], from - margin), Math.min(limits[1], to + margin)];
  const [first, last] = fit([begin, end], limits);
  return [Math.floor(first), Math.ceil(last)];
}

export interface Patches { patches: Patch[]; loading: boolean; error: string }

export function usePatches(run: RunData, load: Load, window: Range, width: number): Patches {
  const origin = run.timeline.run[0];
  const given = useMemo(
    () => [run.timeline, ...(run.details ?? []).map((detail) => detail.timeline)].map((each) => makePatch(each, origin)), [run]);
  const [answer, setAnswer] = useState<Patch | null>(null);
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState("");
  const question = useRef(0);
  useEffect(() => {
    if (!load || width === 0 || serves(answer, window) || serves(given[0]!, window)) return;
    const mine = ++question.current;  // answers to earlier questions are too late
    const timer = setTimeout(() => {
      setLoading(true);
      const [from, to] = askFor(window, [0, run.timeline.run[1] - origin]);
      const pixels = Math.round((width * (to - from)) / (window[1] - window[0]));
      load([from + origin, to + origin], pixels).then(
        (timeline) => { if (mine === question.current) { setAnswer(makePatch(timeline, origin)); setError(""); setLoading(false); } },
        (reason: unknown) => { if (mine === question.current) { setError(String(reason)); setLoading(false); } },
      );
    }, settleMs);
    return () => clearTimeout(timer);
  }, [load, run, window[0], window[1], width, answer]);
  const patches = useMemo(() => coarseFirst(answer ? [...given, answer] : given), [given, answer]);
  return { patches, loading, error };
}

// Other pictures ask the timeline of a run to show a part of it: nanoseconds of the run's clock.
const asks = new EventTarget();
const show = "show";

export function showInTimeline(run: RunData, range: Range): void {
  asks.dispatchEvent(new CustomEvent(show, { detail: { run, range } }));
}

export function useAsks(run: RunData, onShow: (range: Range) => void): void {
  const now = useRef(onShow);
  now.current = onShow;
  useEffect(() => {
    const answer = (event: Event) => {
      const { run: of, range } = (event as CustomEvent<{ run: RunData; range: Range }>).detail, origin = run.timeline.run[0];
      if (of === run) now.current([range[0] - origin, range[1] - origin]);
    };
    asks.addEventListener(show, answer);
    return () => asks.removeEventListener(show, answer);
  }, [run]);
}
