import { useMemo } from "preact/hooks";
import type { LaneKind, StepDetail } from "../../data";
import { column, DataTable } from "../../table";
import { clipped, count, moment, percent, plural, time, visible } from "../../text";
import { categoryVariable, type Range, stageCategory } from "../drawing";
import type { ColourBy } from "./draw";
import { classOf, classVariable, gaps, kernelClasses } from "./gaps";
import { type Found, type LaneRow, laneTotal, nameTotals, type Place, resolution, type Segment, type SliceFacts } from "./patches";

interface ToolbarProps {
  onZoom: (factor: number) => void; onPan: (share: number) => void; onReset: () => void;
  colourBy: ColourBy; onColourBy: (by: ColourBy) => void;
  query: string; onQuery: (query: string) => void; found: Found[]; onFound: (found: Found) => void;
  details: StepDetail[]; onDetail: (detail: StepDetail) => void; stages: Place[]; onStage: (place: Place) => void;
}

export function Toolbar(props: ToolbarProps) {
  return (
    <div class="p-bar" role="toolbar" aria-label="timeline">
      <span class="p-group">
        <button type="button" onClick={() => props.onZoom(0.5)} aria-label="zoom in">+</button>
        <button type="button" onClick={() => props.onZoom(2)} aria-label="zoom out">−</button>
        <button type="button" onClick={() => props.onPan(-0.5)} aria-label="earlier">←</button>
        <button type="button" onClick={() => props.onPan(0.5)} aria-label="later">→</button>
        <button type="button" onClick={props.onReset}>whole run</button>
      </span>
      <Places {...props} />
      <label class="p-group">colour by
        <select value={props.colourBy} onChange={(event) => props.onColourBy(event.currentTarget.value as ColourBy)}>
          <option value="stage">stage</option>
          <option value="class">class of kernel</option>
          <option value="name">name</option>
        </select>
      </label>
      <input type="search" placeholder="search names" aria-label="search names in the window" value={props.query}
             onInput={(event) => props.onQuery(event.currentTarget.value)} />
      <Matches {...props} />
    </div>
  );
}

// By kind of lane: a range contains what runs in it, so their times are not added up.
function Matches({ query, found, onFound }: ToolbarProps) {
  if (query.trim() === "") return null;
  return (
    <span role="status">
      {found.length === 0 ? "no slice of that name in this window" : found.map((each) => (
        <button key={each.kind} type="button" onClick={() => onFound(each)} title="zoom to the longest">
          {each.kind}: {time(each.covered)} in {count(each.slices)}
        </button>
      ))}
    </span>
  );
}

// Where to look: the median step of each stage as buttons, stages from their first to their last step and other steps in
// a list. What has a button or is named as a step is known kernel by kernel.
function Places({ details, onDetail, stages, onStage }: ToolbarProps) {
  const medians = details.filter(isMedian), others = details.filter((detail) => !isMedian(detail));
  const go = (at: number) => (at < stages.length ? onStage(stages[at]!) : onDetail(others[at - stages.length]!));
  return (
    <>
      {medians.map((detail) => (
        <button key={detail.stage} type="button" onClick={() => onDetail(detail)} title="the step of median duration">
          one {visible(detail.stage)} step
        </button>
      ))}
      {stages.length + others.length > 0 && (
        <select value="" aria-label="go to" onChange={(event) => {
          const chosen = event.currentTarget.value;
          event.currentTarget.value = "";
          if (chosen !== "") go(Number(chosen));
        }}>
          <option value="">go to …</option>
          {stages.map((stage, at) => <option key={stage.name} value={at}>all of {stage.name}</option>)}
          {others.map((detail, at) => (
            <option key={at} value={stages.length + at}>{detail.which} step of {visible(detail.stage)}</option>
          ))}
        </select>
      )}
    </>
  );
}

const isMedian = (detail: StepDetail): boolean => (detail.which ?? "median") === "median";

interface StatusProps {
  where: string;  // a step that is in view as a whole
  empty: number;  // lanes that have nothing in the window
  window: Range; whole: number; parts: Segment[]; lanes: LaneRow[]; live: boolean; loading: boolean; error: string;
}

// What is in view and how exact it is.
export function Status({ where, empty, window, whole, parts, lanes, live, loading, error }: StatusProps) {
  const events = lanes.filter((row) => row.lane.kind !== "idle").map((row) => row.key);  // gaps are none
  const { shown, all, mergedNs } = useMemo(() => resolution(parts, events), [parts, lanes]);
  const span = window[1] - window[0];
  return (
    <div class="p-muted">
      {where !== "" && <b>{where}: </b>}
      {time(span)}{span < whole && <> of {time(whole)}</>} in view, {parts.length > 1 && "about "}{count(all)} slices
      {shown < all && <>, drawn as {count(shown)}: what is closer than {time(mergedNs)} is merged
        {live ? "; zoom in to see it" : <>; single kernels are here only
          for the steps named above, <code>llmprof view</code> has all</>}</>}.
      {empty > 0 && ` ${plural(empty, "lane")} with nothing in this window ${empty === 1 ? "is" : "are"} not shown.`}
      {loading && " Asking for details …"}
      {error !== "" && <span role="alert"> No details: {error}</span>}
      <details class="p-noprint">
        <summary>Keys and gestures</summary>
        w s or + − zoom, a d or ← → move, 0 whole run; Tab or ↑ ↓ to a lane, there n p next and previous slice, Enter selects the
        one in the middle, Enter again zooms to it, Esc back. Drag selects a part of the time and
        sums up what is in it (x: all that is in view), Shift and drag moves; w a s d also work while the pointer is over the picture;
        the wheel zooms with Ctrl or once a lane was clicked; two fingers zoom. Hatched: estimated, or no kernel.
      </details>
    </div>
  );
}

interface LegendProps { by: ColourBy; stages: string[]; lanes: LaneRow[] }

// What the colours mean; by name they only tell neighbours apart.
export function Legend({ by, stages, lanes }: LegendProps) {
  const key = (name: string, variable: string, hatched = false) => (
    <li key={name} class="p-key">
      <span class={hatched ? "p-swatch p-hatched" : "p-swatch"} style={{ backgroundColor: `var(${variable})` }} />{name}
    </li>
  );
  return (
    <>
      <ul class="p-legend" aria-label={`colours: ${by}`}>
        {by === "stage" ? stages.map((stage) => key(stage, categoryVariable(stageCategory(stage))))
          : kernelClasses.map((name) => key(name, classVariable(classOf(name))))}
        {by === "stage" && key("no stage", "--p-muted")}
      </ul>
      {lanes.some(({ lane }) => lane.kind === "idle") && (
        <ul class="p-legend" aria-label="gaps">{gaps.map(({ name, variable }) => key(name, variable, true))}</ul>
      )}
    </>
  );
}

const kinds: Record<LaneKind, string> = {
  stages: "step", ranges: "range", api: "call", stream: "kernel", copies: "copy", idle: "gap", graphs: "graph launch",
};

// "kernel gemm, stage decode, begins at 1.2 ms, takes 3 µs"
export function inWords(facts: SliceFacts): string {
  const name = facts.short || clipped(facts.name);
  const parts = [facts.count > 1 ? `${count(facts.count)} slices, most of their time ${name}` : `${kinds[facts.kind]} ${name}`];
  if (facts.stage !== "") parts.push(`stage ${facts.stage}`);
  parts.push(`begins at ${moment(facts.begin, facts.duration)}`, `takes ${time(facts.duration)}`);
  if (facts.count > 1) parts.push(`${percent(facts.busy)} of it covered`);
  if (facts.estimated) parts.push("estimated: a node of a graph that was not recorded by itself");
  return parts.join(", ");
}

// full: the name with all its arguments.
export function SliceText({ facts, share, full }: { facts: SliceFacts; share?: number; full?: boolean }) {
  const many = facts.count > 1;
  return (
    <>
      <b>{(full ? facts.name : clipped(facts.name)) || "without a name"}</b> {many && <span>and others, {count(facts.count)} slices merged </span>}
      <br />
      {facts.stage !== "" && <>stage {facts.stage}, </>}
      begins at {moment(facts.begin, facts.duration)}, takes {time(facts.duration)}
      {many && <>, {percent(facts.busy)} of it covered</>}
      {share !== undefined && <>, {percent(share)} of the window</>}
      {facts.estimated && <>, <i>estimated (hatched): this node of a graph was not recorded by itself</i></>}
      {facts.id > 0 && facts.table && <span class="p-muted">, {facts.table} {facts.id}</span>}
    </>
  );
}

interface TablesProps { parts: Segment[]; lanes: LaneRow[]; window: Range; lane: LaneRow | null }

const mostNames = 30;
const inWindow = [column("ns", "time", "covered"), column("share", "of the window", "share"), column("count", "slices", "slices")];
const laneColumns = [column("name", "lane", "lane"), column("word", "kind", "kind"), ...inWindow, column("ns", "estimated", "estimated")];
const nameColumns = [column("name", "name", "name"), ...inWindow, column("ns", "longest alone", "longest")];

// What the lanes show in the window, as numbers.
export function TimelineTables({ parts, lanes, window, lane }: TablesProps) {
  const span = window[1] - window[0];
  const chosen = lane ?? lanes.find((row) => row.lane.kind === "stream") ?? lanes[0];
  return (
    <>
      <DataTable description={{ name: "lanes", title: "Lanes of this window as a table", columns: laneColumns }}
                 rows={() => lanes.map((row) => {
                   const total = laneTotal(parts, row.key);
                   return { lane: `${row.lane.group}: ${row.lane.name}`, kind: row.lane.kind, ...total, share: total.covered / span };
                 })} />
      {chosen && (
        <DataTable description={{ name: "names", columns: nameColumns,
                                  title: `Most time in ${visible(chosen.lane.name)} (${visible(chosen.lane.group)}), this window` }}
                   rows={() => nameTotals(parts, chosen.key, mostNames).map((row) => (
                     { ...row, name: clipped(row.name), share: row.covered / span, longest: row.longest || "only merged" }))} />
      )}
    </>
  );
}
