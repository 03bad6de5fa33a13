// The frames of a flame graph as tables.
import { column, type Column, DataTable } from "../../table";
import { clipped, change as changed } from "../../text";
import { labelOf } from "./draw";
import { byName, type FlameModel, lookOf, relativeChange, type Side, weightNames, weightUnits } from "./model";

interface FlameTablesProps { model: FlameModel; weight: number; side: Side; zoomed: number }

const most = 40;
const frameColumns = [column("name", "frame", "name"), column("word", "kind", "kind")];

export function FlameTables(props: FlameTablesProps) {
  return props.model.differential ? <ChangeTable {...props} /> : <Top {...props} />;
}

function Top({ model, weight, side, zoomed }: FlameTablesProps) {
  const { tree } = model, weights = model.weights(weight, side), unit = weightUnits[weight]!, all = weights.total[0]!;
  const rows = (by: "self" | "total") => byName(tree, weights, zoomed).filter((row) => row.kind !== "root" && row[by] > 0)
    .sort((a, b) => b[by] - a[by]).slice(0, most)
    .map((row) => ({ ...row, name: clipped(row.name), kind: lookOf(row.kind).name, self_share: row.self / all,
                     total_share: row.total / all }));
  const columns: Column[] = [...frameColumns, column("measure", "self", "self", "", { unit }), column("share", "self of all", "self_share"),
    column("measure", "total", "total", "", { unit }), column("share", "total of all", "total_share")];
  const where = zoomed === 0 ? "" : ` inside ${tree.names[zoomed]}`;
  return (
    <>
      {(["self", "total"] as const).map((by) => (
        <DataTable key={by} rows={() => rows(by)} description={{ name: by, columns,
          title: `Most ${weightNames[weight]} in ${by === "self" ? "itself" : "total"}${where}` }} />
      ))}
    </>
  );
}

// Paths whose own weight changed most: no change is counted at its ancestors again.
function ChangeTable({ model, weight }: FlameTablesProps) {
  const { tree } = model, unit = weightUnits[weight]!;
  const before = model.weights(weight, "before").self, after = model.weights(weight, "after").self;
  const path = (node: number): string => {
    const names = [clipped(tree.names[node]!)];
    for (let at = tree.parent[node]!; at > 0; at = tree.parent[at]!) names.unshift(labelOf(tree, at));
    return names.join(" › ");
  };
  const rows = () => Array.from(before, (_, node) => node)
    .filter((node) => relativeChange(before[node]!, after[node]!) !== 0)
    .sort((a, b) => Math.abs(after[b]! - before[b]!) - Math.abs(after[a]! - before[a]!)).slice(0, most)
    .map((node) => ({ name: path(node), kind: lookOf(tree.kinds[node]!).name, before: before[node]!, after: after[node]!,
                      change: after[node]! - before[node]!, relative: changed(before[node]!, after[node]!) }));
  const columns = [...frameColumns, ...["before", "after", "change"].map((key) => column("measure", key, key, "", { unit })),
                   column("share", "relative", "relative")];
  return <DataTable rows={rows} description={{ name: "changes", columns, title: `Paths whose own ${weightNames[weight]} changed most` }} />;
}
