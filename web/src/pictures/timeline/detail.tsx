import type { LaneKind } from "../../data";
import { clipped, shortName } from "../short_name";
import { count, moment, percent, time } from "../units";
import type { SliceFacts } from "./slices";

const kinds: Record<LaneKind, string> = {
  stages: "step", ranges: "range", api: "call", stream: "kernel", copies: "copy", idle: "gap", graphs: "graph launch",
};

// "kernel gemm, stage decode, begins at 1.2 ms, takes 3 µs"
export function inWords(facts: SliceFacts): string {
  const name = facts.kind === "stream" ? shortName(facts.name) : clipped(facts.name);
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
