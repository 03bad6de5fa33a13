import type { Source } from "./data";

export function App({ source }: { source: Source }) {
  return <main>{source.runs().join(", ")}</main>;
}

export function Failure({ error }: { error: unknown }) {
  return <main><p role="alert">{error instanceof Error ? error.message : String(error)}</p></main>;
}
