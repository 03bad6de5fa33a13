import type { StepDetail } from "../../data";
import { visible } from "../../visible";
import { count, time } from "../units";
import type { Found } from "./slices";

interface ToolbarProps {
  onZoom: (factor: number) => void; onPan: (share: number) => void; onReset: () => void;
  colourBy: "stage" | "name"; onColourBy: (by: "stage" | "name") => void;
  query: string; onQuery: (query: string) => void; found: Found[]; onFound: (found: Found) => void;
  details: StepDetail[]; onDetail: (detail: StepDetail) => void;
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
      <Steps {...props} />
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

// Steps that are known kernel by kernel: the median one of each stage as buttons, the others in a list.
function Steps({ details, onDetail }: ToolbarProps) {
  const medians = details.filter(isMedian), others = details.filter((detail) => !isMedian(detail));
  return (
    <>
      {medians.map((detail) => (
        <button key={detail.stage} type="button" onClick={() => onDetail(detail)} title="the step of median duration">
          one {visible(detail.stage)} step
        </button>
      ))}
      {others.length > 0 && (
        <select value="" aria-label="other steps" onChange={(event) => {
          const detail = others[Number(event.currentTarget.value)];
          event.currentTarget.value = "";
          if (detail) onDetail(detail);
        }}>
          <option value="">other steps …</option>
          {others.map((detail, at) => <option key={at} value={at}>{visible(detail.stage)}: {detail.which}</option>)}
        </select>
      )}
    </>
  );
}

const isMedian = (detail: StepDetail): boolean => (detail.which ?? "median") === "median";
