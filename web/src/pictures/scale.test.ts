import { describe, expect, it } from "vitest";
import { linearScale, logScale, powersOfTen, roundStep, roundValues } from "./drawing";

describe("scales", () => {
  it("maps values to pixels and back", () => {
    const scale = linearScale([100, 300], [0, 50]);
    expect(scale.toPixel(200)).toBe(25);
    expect(scale.toValue(25)).toBe(200);
  });
  it("stays finite when all values are the same", () => {
    const scale = linearScale([7, 7], [10, 90]);
    expect(scale.toPixel(7)).toBe(10);
    expect(scale.toValue(50)).toBe(7);
  });
  it("gives every power of ten the same distance", () => {
    const scale = logScale([1, 1000], [300, 0]);
    expect(scale.toPixel(10)).toBeCloseTo(200);
    expect(scale.toPixel(100)).toBeCloseTo(100);
    expect(scale.toValue(100)).toBeCloseTo(100);
  });
});

describe("round values", () => {
  it("steps by 1, 2, 5", () => {
    expect([0.9, 1, 1.1, 3, 6, 70].map(roundStep)).toEqual([1, 1, 2, 5, 10, 100]);
  });
  it("lie inside and are not too many", () => {
    expect(roundValues([3, 27], 5)).toEqual([5, 10, 15, 20, 25]);
    expect(roundValues([0, 1], 4)).toEqual([0, 0.5, 1]);
    expect(roundValues([5, 5], 4)).toEqual([]);
    for (const [from, to] of [[0, 17], [-3, 8], [1e9, 1e9 + 37]] as const) {
      const values = roundValues([from, to], 8);
      expect(values.length).toBeGreaterThan(2);
      expect(values.length).toBeLessThanOrEqual(9);
      for (const value of values) expect(value >= from && value <= to).toBe(true);
    }
  });
  it("powers of ten, both ends included", () => {
    expect(powersOfTen([0.1, 100])).toEqual([0.1, 1, 10, 100]);
    expect(powersOfTen([0.2, 99])).toEqual([1, 10]);
  });
});
