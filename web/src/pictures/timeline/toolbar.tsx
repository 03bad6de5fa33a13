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
      {props.details.map((detail) => (
        <button key={detail.stage} type="button" onClick={() => props.onDetail(detail)} title="the step of median duration">
          one {visible(detail.stage)} step
        </button>
      ))}
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
