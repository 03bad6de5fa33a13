import { describe, expect, it } from "vitest";
import { bytes, change, count, inUnit, moment, percent, rate, time, timeLabels } from "../text";

describe("units", () => {
  it("times", () => {
    expect([0, 1, 999, 1500, 2_345_678, 15.96e9, 119e9, 180e9].map(time))
      .toEqual(["0 ns", "1 ns", "999 ns", "1.5 µs", "2.35 ms", "16 s", "119 s", "3 min"]);
  });
  it("sizes and counts", () => {
    expect([512, 1536, 3e9].map(bytes)).toEqual(["512 B", "1.54 kB", "3 GB"]);
    expect([7, 9999, 12_345, 10_000_000].map(count)).toEqual(["7", "9999", "12.3 k", "10 M"]);
  });
  it("rates go by 1000", () => {
    expect(rate(4.8e12, "B/s")).toBe("4.8 TB/s");
    expect(rate(989e12, "FLOP/s")).toBe("989 TFLOP/s");
    expect(rate(12, "FLOP/s")).toBe("12 FLOP/s");
  });
  it("shares", () => {
    expect([0, 0.0004, 0.005, 0.1234, 0.76, 0.99999, 2.5].map(percent))
      .toEqual(["0 %", "< 0.1 %", "0.5 %", "12.3 %", "76 %", "100 %", "250 %"]);
  });
  it("changes", () => {
    expect([change(100, 105), change(100, 88), change(0, 3), change(3, 0), change(0, 0)])
      .toEqual(["+5 %", "-12 %", "new", "gone", "0 %"]);
  });
  it("units of the data", () => {
    expect([inUnit(2e6, "ns"), inUnit(0.5, "share"), inUnit(2048, "bytes"), inUnit(345.6, "W"), inUnit(5, "")])
      .toEqual(["2 ms", "50 %", "2.05 kB", "346 W", "5"]);
  });
  it("moments are as exact as what lies there", () => {
    expect(moment(8_000_001_234, 7_390)).toBe("8.0000012 s");
    expect(moment(8_000_001_234, 1)).toBe("8.000001234 s");
    expect(moment(1_500, 1e6)).toBe("2 µs");
    expect(moment(0, 5)).toBe("0 ns");
  });
  it("labels of an axis share a unit and can be told apart", () => {
    expect(timeLabels([0, 5e5, 1e6, 1.5e6])).toEqual(["0.0 ms", "0.5 ms", "1.0 ms", "1.5 ms"]);
    expect(timeLabels([1e9, 1e9 + 100, 1e9 + 200])).toEqual(["1.0000000 s", "1.0000001 s", "1.0000002 s"]);
    expect(timeLabels([0, 20, 40])).toEqual(["0 ns", "20 ns", "40 ns"]);
  });
});
