import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { visible } from "../../visible";
import type { Range } from "../scale";
import { axisHeight, TimeAxis } from "./axis";
import { extent } from "./curve";
import type { LaneStyle } from "./draw";
import { CurveRow, LaneRow, narrow } from "./lane_row";
import type { Segment } from "./patches";
import { curveHeight, type Group, laneHeight } from "./rows";

interface RowsProps { parts: Segment[]; curveParts: Segment[]; labelWidth: number; style: LaneStyle }
interface LanesProps extends RowsProps {
  groups: Group[]; mark: Range | null;
  onKeyDown: (event: KeyboardEvent) => void; handlers: JSX.HTMLAttributes<HTMLDivElement>;
}

export function Lanes({ groups, mark, onKeyDown, handlers, ...rows }: LanesProps) {
  const { labelWidth, style } = rows;
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const toggle = (name: string) => setClosed((now) => new Set(now.has(name) ? [...now].filter((each) => each !== name) : [...now, name]));
  return (
    <div class="p-lanes" onKeyDown={onKeyDown} {...handlers}>
      <div class="p-row p-axis-row" style={{ height: `${axisHeight}px` }}>
        <div class="p-label" style={{ width: `${labelWidth}px` }}>{labelWidth < narrow ? "time" : "time in the run"}</div>
        <TimeAxis window={style.window} width={style.width} />
      </div>
      {mark && <div class="p-select" style={{ left: `${labelWidth + mark[0]}px`, width: `${mark[1] - mark[0]}px` }} />}
      {groups.map((group) => (
        <div key={group.name} role="group" aria-label={visible(group.name)}>
          <div class="p-row p-group-row">
            <button type="button" aria-expanded={!closed.has(group.name)} onClick={() => toggle(group.name)}>
              {closed.has(group.name) ? "▸" : "▾"} {visible(group.name)}
            </button>
          </div>
          {!closed.has(group.name) && <Rows group={group} {...rows} />}
        </div>
      ))}
    </div>
  );
}

function Rows({ group, parts, curveParts, labelWidth, style }: RowsProps & { group: Group }) {
  return (
    <>
      {group.lanes.map((row) => (
        <LaneRow key={row.key} row={row} parts={parts} labelWidth={labelWidth} style={{ ...style, height: laneHeight(row.lane.kind) }} />
      ))}
      {group.curves.map((row) => (
        <CurveRow key={row.key} row={row} parts={curveParts} labelWidth={labelWidth}
                  style={{ window: style.window, width: style.width, height: curveHeight, theme: style.theme,
                           extent: extent(row.curve) }} />
      ))}
    </>
  );
}
