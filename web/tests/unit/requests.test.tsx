// The section of requests: what it says with data, without, and with data of a stranger.
import { render } from "preact-render-to-string";
import { describe, expect, it, vi } from "vitest";
import { sections } from "../../src/app";
import type { PageData, RequestData, Report, RunData } from "../../src/data";
import { RequestDetails } from "../../src/pictures/requests/details";
import { lanesOf } from "../../src/pictures/requests/model";
import { hasRequests, lead, loadsOf, RequestCurves } from "../../src/sections/requests";
import { embeddedMembers, sourceOf } from "../../src/sources";

vi.stubGlobal("matchMedia", () => ({ matches: false }));

const data: RequestData = {
  span: [5000, 5400], window: [5000, 5400], pixel_ns: 1, in_window: 2, states: ["queued", "stalled"],
  rows: { id: [1, 2], name: ["<img src=x>\u202E", "b"], arrival_ns: [0, 10], ttft_ns: [2e6, null], status: ["length", "aborted"], time_ns: [80, 0],
          e2e_ns: [5e6, null], steps: [1, 0], stalled_ns: [30, null], stalled_most_by: [[[2, "b", 30]], []], attention_ns: [60, 0], idle_ns: [20, 0],
          from_ns: [0, 10], to_ns: [200, 60], in_states: [[[0, 100, 0], [1, 100, 1]], [[0, 50, 0]]],
          client: [{ arrival_ns: -1e6, sent_ns: -9e5, ttft_ns: 3e6, e2e_ns: 6e6, tpot_ns: null }, null] },
  parts: { request: [0, 0, 1], state: [0, 1, 0], begin: [0, 100, 10], end: [100, 200, 60], steps: [0, 1, 0], stalled_ns: [0, 30, 0] },
  works: [{ key: "attention_ns", work: "attention", rule: "by pairs of tokens" }, { key: "idle_ns", work: "device idle", rule: "equal parts" }],
  curves: [{ group: "requests", name: "running", unit: "", ts: [0, 100], low: [0, 1], high: [1, 1] }],
  distributions: [],
  members: { requests: [1], columns: { step_id: [7, 7], request_id: [1, null], request: [1, 0], stage: [2, 2], stalled_by: [3, 0],
                                       time_ns: [80, 5], begin_ns: [100, 100], names: ["", "a", "decode", "b"] } },
};
const report: Report = { requests: { count: 2, finished: 1, failed: 1, source: "server" },
                         tables: { "requests.all[]": { columns: [{ key: "ttft_ns", title: "TTFT", format: "ns", meaning: "Arrival to first token." }] } } } as Report;
const page: PageData = { made_by: "", runs: [{ name: "r", report, requests: data } as unknown as RunData], diffs: [] };
const view = { source: sourceOf(page), index: 0, data: page.runs[0]! };

describe("the section of requests", () => {
  it("is there only where a run has requests", () => {
    const part = sections.find(({ id }) => id === "requests")!;
    expect([report, {}, { requests: { count: 0 } }, { requests: { count: 0, warm_up: 3 } }].map((each) => part.when!(each as Report)))
      .toEqual([true, false, false, true]);
    expect(hasRequests(report)).toBe(true);
  });
  it("says how many, whose view, and how they ended", () => {
    expect(lead(report["requests"])).toBe("2 requests, as the engine marked them: 1 finished, 1 failed.");
    expect(lead({ count: 1, finished: 1, source: "predicted", requests_per_s: 2.5, output_tokens_per_s: 100, duration_ns: 2e9 }))
      .toBe("1 request, predicted, not measured: 1 finished; 2.5 requests/s, 100 output tokens/s in 2 s.");
    expect(lead({ count: 1, finished: 0, unfinished: 1, source: "other" })).toContain("seen by other: 0 finished, 1 without an end");
  });
  it("puts runs with requests beside each other by throughput", () => {
    const run = (name: string, rate: number | null) => ({ name, report: { requests: { source: "client", count: 9, failed: 1, requests_per_s: rate,
      latencies: [{ source: "server", metric: "TTFT", p50_ns: 1, p99_ns: 2 }, { source: "client", metric: "TTFT", p50_ns: 3, p99_ns: 4 }] } } });
    const rows = loadsOf([run("fast", 8), run("none", null), run("slow", 2), { name: "other", report: {} }]);
    expect(rows.map((row) => [row["name"], row["requests_per_s"], row["TTFT p50"], row["TTFT p99"]])).toEqual([["slow", 2, 3, 4], ["fast", 8, 3, 4]]);
  });
  it("draws its curves", () => expect(render(<RequestCurves data={data} />)).toContain("Requests running"));
});

describe("a request", () => {
  const html = (at: number) => render(<RequestDetails view={view} data={data} lane={lanesOf(data)[at]!} onSelect={() => undefined} />);
  it("says its figures in the report's words, where its time went, and who stalled it", () => {
    for (const text of ["TTFT", "2 ms", "Arrival to first token.", "decode, stalled", "attention", "by pairs of tokens", "75 %",
                        "Whose prompts stalled it", "TTFT 3 ms (1 ms more than the server)", "sent it 100 µs after its schedule"])
      expect(html(0)).toContain(text);
  });
  it("shows names as text", () => {
    expect(html(0)).not.toContain("<img");
    expect(html(0)).toContain("⟨U+202E⟩");
  });
  it("says where no step is known", () => expect(html(1)).toContain("No step says that it worked for this request"));
});

describe("the members of steps in a file", () => {
  it("are those of a request whose steps it has, or of a step", async () => {
    expect(embeddedMembers(data.members, { request: 1 })?.rows).toEqual(
      [{ step_id: 7, request_id: 1, request: "a", stage: "decode", stalled_by: "b", time_ns: 80, begin_ns: 100 }]);
    expect(embeddedMembers(data.members, { step: 7 })?.rows.map((row) => row["request"])).toEqual(["a", null]);
    expect(embeddedMembers(data.members, { request: 2 })).toBeNull();
    expect(embeddedMembers(undefined, { step: 7 })).toBeNull();
    expect(await view.source.members(0, { step: 8 })).toBeNull();
  });
});
