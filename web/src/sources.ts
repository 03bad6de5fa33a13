// The data that stand in the page itself, as text: never markup, never code.
import type { Diff, Members, MembersOf, PageData, RequestLanes, Row, RunData, Source, Timeline } from "./data";

export function embeddedSource(document: Document): Source | null {
  const text = document.getElementById("data")?.textContent;
  return text ? sourceOf(JSON.parse(text) as PageData) : null;
}

export function sourceOf(data: PageData): Source {
  const runs = Array.isArray(data?.runs) ? data.runs : [];
  const run = (index: number) => {
    const found = runs[index];
    return found ? Promise.resolve(found) : Promise.reject(new Error(`there is no run ${index}`));
  };
  return {
    live: false,
    runs: () => runs.map((each) => each.name),
    run,
    // What was aggregated when the page was made: the whole run. Steps in detail are in RunData.details.
    timeline: async (index): Promise<Timeline> => (await run(index)).timeline,
    requests: async (index) => (await run(index)).requests ?? Promise.reject(new Error("this run has no requests")),
    members: async (index, of) => embeddedMembers((await run(index)).requests?.members, of),
    rows: () => Promise.reject(new Error("rows are only in the run itself: llmprof query")),
    diffs: () => Promise.resolve(data?.diffs ?? []),
  };
}

const texts = ["stage", "request", "stalled_by"];

export function embeddedMembers(data: NonNullable<RunData["requests"]>["members"] | undefined, of: MembersOf): Members | null {
  const columns = data?.columns ?? {}, names = columns["names"] ?? [];
  if ("request" in of && !data?.requests.includes(of.request)) return null;
  const [key, id] = "step" in of ? ["step_id", of.step] : ["request_id", of.request];
  const keys = Object.keys(columns).filter((each) => each !== "names"), rows: Row[] = [];
  columns[key]?.forEach((value, at) => {
    if (value !== id) return;
    rows.push(Object.fromEntries(keys.map((each) => {
      const found = columns[each]![at];
      return [each, texts.includes(each) ? names[Number(found)] || null : found];
    })));
  });
  return rows.length > 0 ? { rows, truncated: false } : null;
}

// The data of `llmprof view`, asked for as they are needed: docs/format/view-api.md.
interface RunState { name: string; state: "waiting" | "working" | "ready" | "failed"; error: string | null }
interface Listing { made_by: string; allow_sql: boolean; runs: RunState[] }
interface Progress { what: string | null; done: number; total: number }
interface Rows { columns: string[]; rows: unknown[][]; truncated: boolean }

const pollMs = 300;  // while the server still reads the run
const widths = [16, 8192] as const;

export async function servedSource(): Promise<Source> {
  if (location.protocol === "file:") throw new Error("this page has no data: it was not made by llmprof report --html");
  const token = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (token) {
    history.replaceState(null, "", location.pathname);  // not in the address bar, nor in a bookmark
    await answer(await fetch("/api/session", post({ token })));
  }
  return new Served(await get<Listing>("/api/runs")).source();
}

class Served {
  private readonly runs = new Map<number, Promise<RunData>>();
  private readonly pending = new Map<number, AbortController>();  // windows asked for, by run

  constructor(private readonly listing: Listing) {}

  source(): Source {
    return {
      live: true,
      runs: () => this.listing.runs.map((run) => run.name),
      run: (index) => this.run(index),
      timeline: (index, window, width, stage) => this.timeline(index, window, width, stage),
      rows: (index, sql) => this.rows(index, sql),
      requests: (index, window, width) => get<RequestLanes>(`/api/run/${index}/requests?${windowOf(window, width)}`),
      members: (index, of) => members(index, of),
      diffs: () => get<Diff[]>("/api/diffs"),
    };
  }

  private run(index: number): Promise<RunData> {
    const known = this.runs.get(index) ?? get<RunData>(`/api/run/${index}`);
    this.runs.set(index, known);
    known.catch(() => this.runs.delete(index));  // ask again next time
    return known;
  }

  // A window that nobody looks at any more is not waited for.
  private timeline(index: number, window: [number, number] | null, width: number, stage: string | null): Promise<Timeline> {
    this.pending.get(index)?.abort();
    const controller = new AbortController();
    this.pending.set(index, controller);
    const wanted = windowOf(window, width);
    // The server knows no "+" for a space.
    const tail = stage === null ? "" : `&stage=${encodeURIComponent(stage)}`;
    return get<Timeline>(`/api/run/${index}/timeline?${wanted}${tail}`, controller.signal);
  }

  // The rows behind evidence are asked for by their place in the diagnosis; other SQL only where the server allows it.
  private async rows(index: number, sql: string): Promise<Rows> {
    const findings = (await this.run(index)).report.diagnosis?.findings ?? [];
    for (const [finding, { evidence }] of findings.entries()) {
      const at = evidence.findIndex((each) => each.rows === sql);
      if (at >= 0) return get<Rows>(`/api/run/${index}/rows?finding=${finding}&evidence=${at}`);
    }
    if (!this.listing.allow_sql) throw new Error("only rows behind findings; llmprof view --allow-sql takes any SELECT");
    return answer<Rows>(await fetch(`/api/run/${index}/query`, post({ sql })));
  }
}

function windowOf(window: [number, number] | null, width: number): URLSearchParams {
  const wanted = new URLSearchParams({ width: String(Math.min(widths[1], Math.max(widths[0], Math.round(width)))) });
  if (window) {
    wanted.set("begin", String(Math.floor(window[0])));
    wanted.set("end", String(Math.ceil(window[1])));
  }
  return wanted;
}

async function members(index: number, of: MembersOf): Promise<Members> {
  const wanted = "step" in of ? `step=${of.step}` : `request=${of.request}`;
  const { columns, rows, truncated } = await get<Rows>(`/api/run/${index}/members?${wanted}`);
  return { rows: rows.map((row) => Object.fromEntries(columns.map((key, at) => [key, row[at]]))), truncated };
}

const post = (body: object): RequestInit =>
  ({ method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// Asks again while the run is still being read.
async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  for (;;) {
    const response = await fetch(path, { credentials: "same-origin", signal: signal ?? null });
    if (response.status !== 202) return answer<T>(response);
    tell(await response.json() as Progress);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

async function answer<T>(response: Response): Promise<T> {
  const body = await response.json() as T & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body;
}

function tell({ what, done, total }: Progress) {
  document.title = `${what ?? "reading"}${total > 0 ? ` ${Math.floor((100 * done) / total)} %` : " …"} · llmprof`;
}
