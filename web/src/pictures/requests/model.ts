// Requests as lanes: which are in view, what each was doing at a time, and many of them as one picture.
import type { RequestLanes, Row } from "../../data";
import type { Range } from "../drawing";

export interface Part { state: string; begin: number; end: number; steps: number; stalled: number }
// begin and end: of all that is known of it; parts: as merged, those of the window.
export interface Lane { id: number; name: string; row: Row; parts: Part[]; begin: number; end: number }

// In the order in which a request goes through them. Hatched: it waits for others.
export interface StateLook { text: string; meaning: string; variable: string; hatched?: boolean; faint?: boolean }
export const looks: Record<string, StateLook> = {
  client: { text: "waiting in the client", meaning: "its schedule wanted it sent", variable: "--p-cat-7", faint: true },
  queued: { text: "queued", meaning: "arrived, in no step yet", variable: "--p-cat-7" },
  awaited: { text: "no token yet", meaning: "queue and prompt together: its first step is not known", variable: "--p-cat-3" },
  prefill: { text: "prefill", meaning: "steps for its prompt, or for what it had lost", variable: "--p-cat-0" },
  decode: { text: "decode", meaning: "steps for its output tokens", variable: "--p-cat-1" },
  stalled: { text: "decode, stalled", meaning: "steps made longer by the prompts of others", variable: "--p-cat-4", hatched: true },
  preempted: { text: "preempted", meaning: "without its KV cache, until its next step", variable: "--p-cat-5", hatched: true },
  delivered: { text: "tokens arrive", meaning: "as its client saw it", variable: "--p-cat-2" },
  between: { text: "between steps", meaning: "in none of the engine's steps, or on the way to its client", variable: "--p-muted" },
};
export const lookOf = (state: string): StateLook => looks[state] ?? { text: state, meaning: "", variable: "--p-muted" };

export function lanesOf({ rows, parts, states }: RequestLanes): Lane[] {
  const keys = Object.keys(rows), count = rows["id"]?.length ?? 0;
  const lanes = Array.from({ length: count }, (_, at): Lane => {
    const row: Row = Object.fromEntries(keys.map((key) => [key, rows[key]![at]]));
    return { id: Number(row["id"]), name: String(row["name"] ?? `request ${row["id"]}`), row, parts: [], begin: row["from_ns"], end: row["to_ns"] };
  });
  parts.request.forEach((lane, at) => {
    lanes[lane]!.parts.push({ state: states[parts.state[at]!] ?? "", begin: parts.begin[at]!, end: parts.end[at]!, steps: parts.steps[at]!,
                              stalled: parts.stalled_ns[at]! });
  });
  return lanes;
}

export const isGood = (status: unknown): boolean => !status || status === "finished" || status === "length";
export const hasFailed = ({ row }: Lane): boolean => Boolean(row["error"]) || !isGood(row["status"]);

export const filters: Record<string, { text: string; holds: (lane: Lane) => boolean }> = {
  all: { text: "all requests", holds: () => true },
  failed: { text: "failed", holds: hasFailed },
  stalled: { text: "stalled by prompts", holds: ({ row }) => row["stalled_ns"] > 0 },
  preempted: { text: "preempted", holds: ({ row }) => row["preemptions"] > 0 },
  cached: { text: "with cached prompt", holds: ({ row }) => row["cached_tokens"] > 0 },
  unfinished: { text: "without an end", holds: ({ row }) => !row["status"] },
};

export function inView(lanes: Lane[], [from, to]: Range, filter: string, query: string): Lane[] {
  const wanted = query.trim().toLowerCase(), { holds } = filters[filter] ?? filters["all"]!;
  return lanes.filter((lane) => lane.begin <= to && lane.end >= from && holds(lane) && (!wanted || lane.name.toLowerCase().includes(wanted)));
}

// The part that a request is in at a time; null: in none, between steps.
export const partAt = ({ parts }: Lane, time: number): Part | null => parts.find(({ begin, end }) => begin <= time && time <= end) ?? null;

// A row for several requests, where each begins after the one before it ended: as many rows as are there at once.
export function packed(lanes: Lane[], apart: number): Lane[][] {
  const rows: Lane[][] = [], ends: number[] = [];
  for (const lane of lanes) {
    const free = ends.findIndex((end) => end + apart <= lane.begin), row = free < 0 ? rows.length : free;
    (rows[row] ??= []).push(lane);
    ends[row] = lane.end;
  }
  return rows;
}

// Many rows as one picture: of `high` x `columns` cells, how much of the rows in a cell is in each state, 0 … 1.
export function mixture(rows: Lane[][], [from, to]: Range, high: number, columns: number, states: string[]): Float32Array {
  const cells = new Float32Array(high * columns * states.length), perNs = columns / (to - from);
  const inRow = new Float32Array(high), rowOf = (at: number) => Math.min(high - 1, Math.floor((at * high) / rows.length));
  rows.forEach((_, at) => { inRow[rowOf(at)]! += 1; });
  rows.forEach((lanes, at) => {
    const row = rowOf(at), weight = 1 / inRow[row]!;
    for (const part of lanes.flatMap(({ parts }) => parts)) {
      const state = states.indexOf(part.state), left = Math.max(0, (part.begin - from) * perNs), right = Math.min(columns, (part.end - from) * perNs);
      for (let x = Math.floor(left); x < right; ++x) {
        const cell = (row * columns + x) * states.length + state;
        cells[cell] = cells[cell]! + weight * (Math.min(right, x + 1) - Math.max(left, x));
      }
    }
  });
  return cells;
}

// Time of a request in each state, longest first; of one with steps also the time between them.
export function timeIn({ row, begin, end }: Lane, states: string[]): { state: string; ns: number; steps: number }[] {
  const sums = ((row["in_states"] ?? []) as [number, number, number][]).map(([state, ns, steps]) => ({ state: states[state] ?? "", ns, steps }));
  const between = end - begin - sums.reduce((sum, { ns }) => sum + ns, 0);
  if (row["steps"] > 0 && between > 0) sums.push({ state: "between", ns: between, steps: 0 });
  return sums.sort((a, b) => b.ns - a.ns);
}
