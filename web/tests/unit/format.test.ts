import { describe, expect, it } from "vitest";
import { bytesText, countText, dateText, grouped, joulesText, measureText, parametersText, plural, shareText, timeText } from "../../src/text";

describe("numbers as text", () => {
  it("carry a unit and three digits", () => {
    expect(timeText(2_061_000)).toBe("2.06 ms");
    expect(bytesText(4.94e9)).toBe("4.94 GB");
    expect(shareText(0.7613)).toBe("76.1 %");
    expect(parametersText(1_235_814_400)).toBe("1.24 B parameters");
  });
  it("are a dash where they are unknown, also when the data are damaged", () => {
    expect([timeText(null), bytesText(undefined), shareText(NaN), countText(Infinity), measureText(null, "s")]).toEqual(["–", "–", "–", "–", "–"]);
  });
  it("do not show a time below what clocks can tell", () => {
    expect([timeText(0.07), timeText(0), timeText(1)]).toEqual(["< 1 ns", "0 ns", "1 ns"]);
  });
  it("take the units of measures: 1 is a fraction, s seconds, B bytes", () => {
    expect([measureText(0.76, "1"), measureText(0.0021, "s"), measureText(3.3e12, "B/s"), measureText(12, ""), measureText(0.03, "J")])
      .toEqual(["76 %", "2.1 ms", "3.3 TB/s", "12", "30 mJ"]);
  });
  it("count in groups of three, joined by a narrow space", () => {
    expect(grouped(16984)).toBe("16\u202f984");
    expect(grouped(999)).toBe("999");
    expect(countText(1234567)).toBe("1.23 M");
    expect([plural(1, "step"), plural(2, "step"), plural(0, "process", "processes")]).toEqual(["1 step", "2 steps", "0 processes"]);
  });
  it("say energies and dates", () => {
    expect(joulesText(1755.5)).toBe("1756 J");
    expect(dateText("2026-11-15T22:48:53Z")).toBe("2026-11-15 22:48 UTC");
    expect(dateText(null)).toBe("–");
  });
});
