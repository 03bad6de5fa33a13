// What the page shows, as the program writes it: docs/format/page.md. Field names are those of the JSON; times are
// nanoseconds, ratios fractions of 1, unknown is null. `report` is the output of `llmprof report --json`
// (docs/format/json.md); only what the page reads is declared here.


export interface Evidence {
  name: string; what: string; value: number | null; unit: string; source: string;
  of: string | null; rows: string | null; why: string | null;
}
export interface Gain {
  ns: number; of_ns: number; run_share?: number | null; upper_bound: boolean; how: string; of?: string | null  // of_ns: ns, the whole; of: what it is
}
export interface Finding {
  rule: string; stage: string | null; part: string | null;
  verdict: "found" | "inconclusive"; severity: "high" | "medium" | "low" | "note";
  title: string; text: string; gain: Gain | null; evidence: Evidence[]; advice: string[]; next: string | null;
}
export interface Diagnosis {
  headline: string; findings: Finding[]; rules: { rule: string; title: string; outcome: string; why: string | null }[];
}
export interface Measure {
  name: string; scope: string; value: number | null; unit: string; source: string;
  better: "lower" | "higher" | "neither"; meaning: string; formula: string; of: string | null; why: string | null;
}

// Names are indices into `names`; -1 is none.
export interface Timeline {
  run: [number, number];     // first and last event
  window: [number, number];  // what the lanes show
  names: string[];
  short_names?: (string | null)[];  // of kernels, for small boxes; null: the name itself
  classes?: (string | null)[];      // of kernels: "GEMM", "attention", …
  lanes: Lane[];
  curves: Curve[];
  slices_in_window: number;  // before merging
}
export type LaneKind = "stages" | "ranges" | "api" | "stream" | "copies" | "idle" | "graphs";
export interface Lane {
  kind: LaneKind; group: string; name: string; table: string | null;
  // Columns of equal length. `begin` is relative to window[0], as is `end`. busy: of its time, covered (0 … 1).
  begin: number[]; end: number[]; label: number[]; stage: number[]; count: number[]; busy: number[];
  id: number[];           // 0: merged
  estimated: number[];    // 0 or 1
}
export interface Curve { group: string; name: string; unit: string; ts: number[]; low: number[]; high: number[] }

export const flameWeights = ["gpu_ns", "cpu_ns", "bytes"] as const;
export interface Flame {
  // Columns; parent[i] < i, -1 the root. kind and name are indices into `names`.
  names: string[]; short_names?: (string | null)[]; classes?: (string | null)[]; parent: number[]; name: number[]; kind: number[];
  self: [number[], number[], number[]];  // by flameWeights
  total: [number, number, number]; merged: [number, number, number]; why: string | null;
  layers?: FlameLayers;  // what single layers have of the nodes inside "layers.*"
  wrappers?: number;     // functions left out because they only pass a call on
  with_wrappers?: Flame | null;
}
export interface FlameLayers { node: number[]; layer: number[]; self: [number[], number[], number[]] }
export interface FlameDiff {
  names: string[]; short_names?: (string | null)[]; classes?: (string | null)[]; parent: number[]; name: number[]; kind: number[];
  before: [number[], number[], number[]]; after: [number[], number[], number[]];  // self weights
}

export interface Roofline {
  device: string; why: string | null;
  roofs: { name: string; flops_per_s: number | null; bytes_per_s: number | null; source: string }[];
  points: { kind: "stage" | "operator" | "module" | "kernel"; name: string; short_name?: string | null; stage: string; intensity: number;
            flops_per_s: number; time_ns: number; source: string;
            level?: "dram" | "l2" | "l1" | null }[];  // whose bytes counters counted
}
export interface StepCurve {
  stage: string; steps: number; begin_ns: number[]; duration_ns: number[]; batch: number[]; context: number[];
}

// Requests: columns of rows as in report.requests.all, by arrival; and what each waited for or was computed for it over
// time. Times count from span[0].
export interface RequestLanes {
  span: [number, number]; window: [number, number];
  pixel_ns: number;    // shorter parts are merged
  in_window: number;   // requests, of which rows has all or some
  states: string[];    // that parts are in
  rows: Record<string, unknown[]>;
  parts: { request: number[]; state: number[]; begin: number[]; end: number[]; steps: number[]; stalled_ns: number[] };
}
export interface Distribution { metric: string; source: string; count: number; ns: number[]; share: number[] }
export interface RequestData extends RequestLanes {
  works: { key: string; work: string; rule: string }[];  // kinds of work, keys of rows and members
  curves: Curve[]; distributions: Distribution[];
  // Who steps worked for, for `requests` (their ids) all steps; texts are indices into columns.names.
  members: { requests: number[]; columns: Record<string, (number | string | null)[]> };
}

// report --json: read with care, every part may be missing.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Report = Record<string, any> & { diagnosis?: Diagnosis; measures?: Measure[] };

// Detail of the median step of each stage, so that zooming shows single kernels in a page without a server.
export interface StepDetail { stage: string; which?: "median" | "slowest" | "first"; step_id: number; timeline: Timeline }

export interface RunData {
  name: string; report: Report; timeline: Timeline; details: StepDetail[];
  flame: Flame; roofline: Roofline; steps: StepCurve[];
  requests?: RequestData;   // absent: the run has none
  thinned?: string | null;  // what was made coarser to keep the page small, in words
}

// docs/format/json-diff.md
export interface DiffRow {
  kind: "pace" | "measure" | "stage" | "module" | "operator" | "shape" | "kernel";
  name: string; stage: string | null; unit: string; per?: string | null; comparable?: boolean;
  before: number | null; after: number | null; change: number | null;     // change: fraction of before
  low: number | null; high: number | null;                                // 95 % interval of the change
  significant: boolean; better: "better" | "worse" | "neither"; why: string[];
}
export interface Diff {
  before: string; after: string; headline: string; work?: { text: string | null } | null; rows: DiffRow[]; flame: FlameDiff | null;
}

export interface PageData { made_by: string; runs: RunData[]; diffs: Diff[] }

// Where the page gets its data from: inside the file, or a server (llmprof view) that knows every row.
export interface Source {
  readonly live: boolean;  // true: timeline() answers any window in full detail
  runs(): string[];
  run(index: number): Promise<RunData>;
  timeline(index: number, window: [number, number] | null, width: number, stage: string | null): Promise<Timeline>;
  rows(index: number, sql: string): Promise<{ columns: string[]; rows: unknown[][] }>;  // only live
  requests(index: number, window: [number, number], width: number): Promise<RequestLanes>;
  members(index: number, of: MembersOf): Promise<Members | null>;  // null: the file does not have them
  diffs(): Promise<Diff[]>;
}
export type MembersOf = { step: number } | { request: number };
export interface Members { rows: Row[]; truncated: boolean }

// The run that is shown, as every section gets it.
export interface View { source: Source; index: number; data: RunData }

// A row of the report's JSON: read with care, any key may be missing.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Row = Record<string, any>;

export const list = (value: unknown): Row[] => (Array.isArray(value) ? (value as Row[]).filter((row) => row !== null) : []);

export const onGpu = (report: Report): boolean => list(report["devices"])[0]?.["kind"] === "gpu";

// Stages by the time that they take once the program is warm: steps times their median. What comes before the work
// (loading, warm-up, compilation) is never foremost.
export function byWarmTime(report: Report): Row[] {
  const before = ["load", "warm-up", "compile"];
  const warm = (stage: Row): number => (before.includes(stage["name"]) ? -1 : (stage["steps"] ?? 0) * (stage["step_p50_ns"] ?? 0));
  return [...list(report["stages"])].sort((a, b) => warm(b) - warm(a));
}

// The stage that most people come for.
export function mainStage(names: string[]): string | undefined {
  return ["decode", "forward", "prefill"].find((name) => names.includes(name)) ?? names[0];
}
