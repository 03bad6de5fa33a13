import { useMemo } from "preact/hooks";
import { categoryVariable, stageCategory } from "../colours";
import type { Range } from "../scale";
import { count, time } from "../units";
import type { Segment } from "./patches";
import type { LaneRow } from "./rows";
import { resolution } from "./slices";

interface StatusProps {
  window: Range; whole: number; parts: Segment[]; lanes: LaneRow[]; live: boolean; loading: boolean; error: string;
}

// What is in view and how exact it is.
export function Status({ window, whole, parts, lanes, live, loading, error }: StatusProps) {
  const events = lanes.filter((row) => row.lane.kind !== "idle").map((row) => row.key);  // gaps are none
  const { shown, all, mergedNs } = useMemo(() => resolution(parts, events), [parts, lanes]);
  const span = window[1] - window[0];
  return (
    <div class="p-muted">
      {time(span)}{span < whole && <> of {time(whole)}</>} in view, {parts.length > 1 && "about "}{count(all)} slices
      {shown < all && <>, drawn as {count(shown)}: what is closer than {time(mergedNs)} is merged
        {live ? "; zoom in to see it" : <>; single kernels are here only
          for the steps named above, <code>llmprof view</code> has all</>}</>}.
      {loading && " Asking for details …"}
      {error !== "" && <span role="alert"> No details: {error}</span>}
      <details class="p-noprint">
        <summary>Keys and gestures</summary>
        w s or + − zoom, a d or ← → move, 0 whole run; Tab or ↑ ↓ to a lane, there n p next and previous slice, Enter selects the
        one in the middle, Enter again zooms to it, Esc back. Drag marks a part to zoom to, Shift and drag moves; the wheel zooms
        with Ctrl or once a lane was clicked; two fingers zoom. Hatched: estimated, or idle.
      </details>
    </div>
  );
}

// What the colours mean; by name they only tell neighbours apart.
export function StageLegend({ stages }: { stages: string[] }) {
  return (
    <ul class="p-legend" aria-label="colours of stages">
      {stages.map((stage) => (
        <li key={stage} class="p-key">
          <span class="p-swatch" style={{ background: `var(${categoryVariable(stageCategory(stage))})` }} />{stage}
        </li>
      ))}
      <li class="p-key"><span class="p-swatch" style={{ background: "var(--p-muted)" }} />no stage</li>
    </ul>
  );
}
