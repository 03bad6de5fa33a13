import { visible } from "../../visible";
import { DataTable } from "../data_table";
import type { Range } from "../scale";
import { clipped } from "../short_name";
import { count, percent, time } from "../units";
import type { Segment } from "./patches";
import type { LaneRow } from "./rows";
import { laneTotal, nameTotals } from "./slices";

interface TablesProps { parts: Segment[]; lanes: LaneRow[]; window: Range; lane: LaneRow | null }

const mostNames = 30;

// What the lanes show in the window, as numbers.
export function TimelineTables({ parts, lanes, window, lane }: TablesProps) {
  const span = window[1] - window[0];
  const chosen = lane ?? lanes.find((row) => row.lane.kind === "stream") ?? lanes[0];
  return (
    <>
      <DataTable title="Lanes of this window as a table"
                 columns={[{ name: "lane" }, { name: "kind" }, { name: "slices", number: true }, { name: "time", number: true },
                           { name: "of the window", number: true }, { name: "estimated", number: true }]}
                 rows={() => lanes.map((row) => {
                   const total = laneTotal(parts, row.key);
                   return [visible(`${row.lane.group}: ${row.lane.name}`), row.lane.kind, count(total.slices), time(total.covered),
                           percent(total.covered / span), total.estimated > 0 ? time(total.estimated) : "none"];
                 })} />
      {chosen && (
        <DataTable title={`Most time in ${visible(chosen.lane.name)} (${visible(chosen.lane.group)}), this window`}
                   columns={[{ name: "name" }, { name: "time", number: true }, { name: "of the window", number: true },
                             { name: "slices", number: true }, { name: "longest alone", number: true }]}
                   rows={() => nameTotals(parts, chosen.key, mostNames).map((row) => [
                     clipped(row.name), time(row.covered), percent(row.covered / span), count(row.slices),
                     row.longest > 0 ? time(row.longest) : "only merged",
                   ])} />
      )}
    </>
  );
}
