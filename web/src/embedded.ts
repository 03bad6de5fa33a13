// The data that stand in the page itself, as text: never markup, never code.
import type { PageData, Source, Timeline } from "./data";

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
    rows: () => Promise.reject(new Error("rows are only in the run itself: llmprof query")),
    diffs: () => Promise.resolve(data?.diffs ?? []),
  };
}
