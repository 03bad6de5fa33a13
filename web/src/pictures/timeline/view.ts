// Which part of the time is in view. Times are nanoseconds after the first event of the run.
import { clamp, type Range } from "../scale";

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
