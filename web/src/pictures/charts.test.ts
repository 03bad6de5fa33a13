import { describe, expect, it } from "vitest";
import type { Report } from "../data";
import { bandPath, extentOf, linePath, marksOf, memoryPanels, nearestIndex } from "./charts";
import { linearScale } from "./drawing";

describe("series", () => {
  it("marks are values of the series", () => {
    expect(marksOf([5, 1, 9, 3])).toEqual({ least: 1, median: 3, most: 9 });
    expect(marksOf([7])).toEqual({ least: 7, median: 7, most: 7 });
    expect(marksOf([])).toBeNull();
    expect(extentOf([3, NaN, -1])).toEqual([-1, 3]);
    expect(extentOf([])).toEqual([0, 1]);
  });
  it("the nearest value is read out", () => {
    expect([-5, 0, 4, 5, 6, 100].map((at) => nearestIndex([0, 10, 20], at))).toEqual([0, 0, 0, 0, 1, 2]);
    expect(nearestIndex([], 1)).toBe(-1);
  });
  it("paths", () => {
    const same = linearScale([0, 100], [0, 100]);
    expect(linePath({ name: "", x: [0, 10], y: [5, 7] }, same, same)).toBe("M0.0 5.0L10.0 7.0");
    expect(linePath({ name: "", x: [0, 10], y: [5, 7], stepped: true }, same, same)).toBe("M0.0 5.0H10.0V7.0");
    expect(bandPath({ name: "", x: [0, 10], y: [5, 7], low: [1, 2] }, same, same)).toBe("M0.0 5.0L10.0 7.0L10.0 2.0L0.0 1.0Z");
    expect(bandPath({ name: "", x: [0, 10], y: [5, 7], low: [1, 2], stepped: true }, same, same)).toBe("M0.0 5.0H10.0V7.0V2.0H10.0V1.0H0.0Z");
  });
});

describe("memory", () => {
  const report = {
    device_memory: { devices: [{
      name: "NVIDIA H200", total_bytes: 1000,
      allocations: { peak_bytes: 60, peak_ns: 120, over_time: [{ ts_ns: 110, bytes: 50 }, { ts_ns: 120, bytes: 60 }] }, driver: null,
    }] },
    host: { memory: [{ ts_ns: 100, rss_bytes: 7 }] },
  } as unknown as Report;
  it("one panel per device, one for the host, times from the begin of the run", () => {
    const panels = memoryPanels(report, [], 100);
    expect(panels.map((panel) => panel.title)).toEqual(["NVIDIA H200", "host, all processes"]);
    expect(panels[0]!.series).toEqual([{ name: "allocated by the program", x: [10, 20], y: [50, 60], stepped: true }]);
    expect(panels[0]!.capacity).toBe(1000);
  });
  it("nothing known is nothing shown", () => {
    expect(memoryPanels({} as Report, [], 0)).toEqual([]);
    expect(memoryPanels({ device_memory: null, host: null } as unknown as Report, [], 0)).toEqual([]);
  });
  it("readings of devices without a series are used", () => {
    const curve = { group: "GPU 0", name: "memory used", unit: "bytes", ts: [5], low: [1], high: [2] };
    const panels = memoryPanels({} as Report, [curve, { ...curve, name: "power", unit: "W" }], 0);
    expect(panels.map((panel) => panel.title)).toEqual(["GPU 0"]);
    expect(panels[0]!.series[0]).toEqual({ name: "memory used", x: [5], y: [2], low: [1] });
  });
});
