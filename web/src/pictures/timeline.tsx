// The run over time, with zoom: docs/format/page.md says where the lanes come from.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { RunData } from "../data";
import "./pictures.css";
import type { TimelineProps } from "./props";
import "./timeline/timeline.css";
import { TimelineView } from "./timeline/timeline_view";
import type { Load } from "./timeline/use_patches";

export function Timeline({ source, index }: TimelineProps) {
  const [run, setRun] = useState<RunData | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let stale = false;
    setRun(null);
    source.run(index).then((found) => { if (!stale) setRun(found); }, (reason: unknown) => { if (!stale) setError(String(reason)); });
    return () => { stale = true; };
  }, [source, index]);
  const load = useMemo<Load>(() => (source.live ? (window, width) => source.timeline(index, window, width, null) : null), [source, index]);
  if (error !== "") return <p role="alert">The timeline is not there: {error}</p>;
  if (!run) return <p aria-busy="true">The timeline is being read …</p>;
  if (run.timeline.lanes.length === 0 && run.timeline.curves.length === 0) return <p>Nothing of this run has a time.</p>;
  return <TimelineView run={run} load={load} />;
}
