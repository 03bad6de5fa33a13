import { count, percent } from "../units";
import { type FlameModel, type Side, weightNames } from "./model";

interface FlameBarProps {
  model: FlameModel; weight: number; onWeight: (weight: number) => void; side: Side; onSide: (side: Side) => void;
  query: string; onQuery: (query: string) => void; matched: number; share: number;
}

export function FlameBar({ model, weight, onWeight, side, onSide, query, onQuery, matched, share }: FlameBarProps) {
  return (
    <div class="p-bar" role="toolbar" aria-label="flame graph">
      <span class="p-group" role="group" aria-label="width is">
        {model.usable.map((each) => (
          <button key={each} type="button" aria-pressed={each === weight} onClick={() => onWeight(each)}>{weightNames[each]}</button>
        ))}
      </span>
      {model.differential && (
        <span class="p-group" role="group" aria-label="width of the run">
          {(["before", "after"] as const).map((each) => (
            <button key={each} type="button" aria-pressed={each === side} onClick={() => onSide(each)}>width: {each}</button>
          ))}
        </span>
      )}
      <input type="search" placeholder="search frames" aria-label="search frames" value={query}
             onInput={(event) => onQuery(event.currentTarget.value)} />
      {query.trim() !== "" && <span role="status">{count(matched)} frames, {percent(share)} of {weightNames[weight]}</span>}
    </div>
  );
}
