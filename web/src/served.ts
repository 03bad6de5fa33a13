// The data of `llmprof view`, asked for as they are needed.
import type { Source } from "./data";

export function servedSource(): Promise<Source> {
  return Promise.reject(new Error("this page has no data: it was not made by llmprof report --html"));
}
