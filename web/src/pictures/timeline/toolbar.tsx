import type { StepDetail } from "../../data";
import { visible } from "../../visible";
import { count, time } from "../units";
import type { Found, Place } from "./slices";

interface ToolbarProps {
  onZoom: (factor: number) => void; onPan: (share: number) => void; onReset: () => void;
  colourBy: "stage" | "name"; onColourBy: (by: "stage" | "name") => void;
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
        <select value={props.colourBy} onChange={(event) => props.onColourBy(event.currentTarget.value as "stage" | "name")}>
          <option value="stage">stage</option>
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
