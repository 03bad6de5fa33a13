import type { Range } from "../scale";
import { neighbour, type Segment, sliceAt, type SliceRef } from "./patches";
import { factsOf } from "./slices";
import { fit, pan, zoom } from "./view";

export interface KeyContext {
  window: Range; limits: Range; parts: Segment[]; selected: SliceRef | null;
  onWindow: (window: Range) => void; onSelect: (slice: SliceRef | null) => void; onZoomTo: (slice: SliceRef) => void;
}

const zoomIn = 0.6, panBy = 0.2;

// Window keys work everywhere in the picture, slice keys on the lane that has the focus.
export function useKeys(context: KeyContext): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = (event.target as Element).closest<HTMLElement>("[data-lane]");
    const next = windowKey(event.key, context);
    if (next) context.onWindow(next);
    else if (event.key === "ArrowDown") focusLane(event.currentTarget as Element, row, 1);
    else if (event.key === "ArrowUp") focusLane(event.currentTarget as Element, row, -1);
    else if (!row || !sliceKey(event.key, row.dataset["lane"]!, context)) return;
    event.preventDefault();
  };
}

export function windowKey(key: string, { window, limits }: KeyContext): Range | null {
  const middle = (window[0] + window[1]) / 2, span = window[1] - window[0];
  switch (key) {
    case "w": case "+": case "=": return zoom(window, middle, zoomIn, limits);
    case "s": case "-": return zoom(window, middle, 1 / zoomIn, limits);
    case "a": case "ArrowLeft": return pan(window, -panBy * span, limits);
    case "d": case "ArrowRight": return pan(window, panBy * span, limits);
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
