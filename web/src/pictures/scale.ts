// Values to pixels and back, and the round values to write at an axis.

export interface Scale { toPixel(value: number): number; toValue(pixel: number): number }
export interface Tick { value: number; label: string }
export type Range = [number, number];

export function linearScale([from, to]: Range, [first, last]: Range): Scale {
  const perValue = to === from ? 0 : (last - first) / (to - from);
  return {
    toPixel: (value) => first + (value - from) * perValue,
    toValue: (pixel) => (perValue === 0 ? from : from + (pixel - first) / perValue),
  };
}

// Of positive values.
export function logScale([from, to]: Range, pixels: Range): Scale {
  const linear = linearScale([Math.log10(from), Math.log10(to)], pixels);
  return {
    toPixel: (value) => linear.toPixel(Math.log10(value)),
    toValue: (pixel) => 10 ** linear.toValue(pixel),
  };
}

// The least of 1, 2, 5 times a power of ten that is not below `least`.
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

// Multiples of a round step inside [from, to], about `most` of them at most.
export function roundValues([from, to]: Range, most: number): number[] {
  if (!(to > from) || most < 1) return [];
  const step = roundStep((to - from) / most);
  const values: number[] = [];
  for (let index = Math.ceil(from / step - 1e-9); index * step <= to + step * 1e-9; ++index) values.push(index * step || 0);
  return values;
}

// Powers of ten inside [from, to].
export function powersOfTen([from, to]: Range): number[] {
  const values: number[] = [];
  for (let power = Math.ceil(Math.log10(from) - 1e-9); power <= Math.log10(to) + 1e-9; ++power) values.push(10 ** power);
  return values;
}

export function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(most, value));
}
