import { describe, expect, it } from "vitest";
import type { RequestLanes } from "../../data";
import { filters, hasFailed, inView, lanesOf, mixture, packed, partAt, timeIn } from "./model";

// Three requests: a is queued and computed, b fails without a step, c comes after a.
const data: RequestLanes = {
  span: [1000, 1400], window: [1000, 1400], pixel_ns: 1, in_window: 3, states: ["queued", "prefill", "decode"],
  rows: {
    id: [1, 2, 3], name: ["a", null, "<b>"], arrival_ns: [0, 50, 220], first_token_ns: [100, null, 300], end_ns: [200, 120, 400],
    status: ["finished", "aborted", null], steps: [2, 0, 1], stalled_ns: [7, null, 0], from_ns: [-20, 50, 220], to_ns: [210, 120, 400],
    in_states: [[[0, 50, 0], [1, 50, 1], [2, 90, 1]], [[0, 70, 0]], [[1, 80, 1]]],
  },
  parts: { request: [0, 0, 0, 1, 2], state: [0, 1, 2, 0, 1], begin: [0, 50, 110, 50, 220], end: [50, 100, 200, 120, 300],
           steps: [0, 1, 1, 0, 1], stalled_ns: [0, 0, 7, 0, 0] },
};
const lanes = lanesOf(data);

describe("lanes of requests", () => {
  it("have their parts, and reach as far as is known", () => {
    expect(lanes.map(({ name, begin, end, parts }) => [name, begin, end, parts.length])).toEqual(
      [["a", -20, 210, 3], ["request 2", 50, 120, 1], ["<b>", 220, 400, 1]]);
    expect(lanes.map(hasFailed)).toEqual([false, true, false]);
  });
  it("are those of the window, of a filter, of a name", () => {
    const names = (filter: string, query = "", to = 500) => inView(lanes, [100, to], filter, query).map(({ name }) => name);
    expect(names("all")).toEqual(["a", "request 2", "<b>"]);
    expect(names("all", "", 200)).toEqual(["a", "request 2"]);
    expect(names("failed")).toEqual(["request 2"]);
    expect(names("stalled")).toEqual(["a"]);
    expect(names("unfinished")).toEqual(["<b>"]);
    expect(names("all", "QUEST")).toEqual(["request 2"]);
    expect(Object.values(filters).every(({ text }) => text !== "")).toBe(true);
  });
  it("say what a request was doing, and where its time went", () => {
    expect(partAt(lanes[0]!, 60)?.state).toBe("prefill");
    expect(partAt(lanes[0]!, 105)).toBeNull();
    expect(timeIn(lanes[0]!, data.states).map(({ state, ns }) => `${state} ${ns}`)).toEqual(["decode 90", "queued 50", "prefill 50", "between 40"]);
    expect(timeIn(lanes[1]!, data.states).map(({ state, ns }) => `${state} ${ns}`)).toEqual(["queued 70"]);
  });
});

describe("many requests", () => {
  it("share rows one after the other", () => {
    expect(packed(lanes, 10).map((row) => row.map(({ name }) => name))).toEqual([["a", "<b>"], ["request 2"]]);
    expect(packed(lanes, 20).map((row) => row.map(({ name }) => name))).toEqual([["a"], ["request 2", "<b>"]]);  // a and <b> are too close
  });
  it("become the share of time of each state, in every cell", () => {
    const cells = mixture(lanes.map((lane) => [lane]), [0, 400], 1, 4, data.states);  // all three in one row
    const at = (column: number) => [0, 1, 2].map((state) => Math.round(300 * cells[column * 3 + state]!));
    expect(at(0)).toEqual([100, 50, 0]);  // a: half of it queued and half prefill; b: queued in the second half
    expect(at(1)).toEqual([20, 0, 90]);
    expect(at(2)).toEqual([0, 80, 0]);
    expect(at(3)).toEqual([0, 0, 0]);
  });
});
