import { type Column, DataTable } from "../data_table";
import { clipped, shortName } from "../short_name";
import { change as changed, inUnit, percent } from "../units";
import { relativeChange } from "./change";
import { lookOf } from "./look";
import { type FlameModel, type Side, weightNames, weightUnits } from "./model";
import { byName } from "./tree";

interface FlameTablesProps { model: FlameModel; weight: number; side: Side; zoomed: number }

const most = 40;
const frameColumns: Column[] = [{ name: "frame" }, { name: "kind" }];

export function FlameTables(props: FlameTablesProps) {
  return props.model.differential ? <ChangeTable {...props} /> : <Top {...props} />;
}

function Top({ model, weight, side, zoomed }: FlameTablesProps) {
  const { tree } = model, weights = model.weights(weight, side), unit = weightUnits[weight]!, all = weights.total[0]!;
  const rows = (by: "self" | "total") => byName(tree, weights, zoomed).filter((row) => row.kind !== "root" && row[by] > 0)
    .sort((a, b) => b[by] - a[by]).slice(0, most)
    .map((row) => [clipped(row.name), lookOf(row.kind, row.name).name, inUnit(row.self, unit), percent(row.self / all),
                   inUnit(row.total, unit), percent(row.total / all)]);
  const columns: Column[] = [...frameColumns, { name: "self", number: true }, { name: "self of all", number: true },
    { name: "total", number: true }, { name: "total of all", number: true }];
  const where = zoomed === 0 ? "" : ` inside ${tree.names[zoomed]}`;
  return (
    <>
      <DataTable title={`Most ${weightNames[weight]} in itself${where}`} columns={columns} rows={() => rows("self")} />
      <DataTable title={`Most ${weightNames[weight]} in total${where}`} columns={columns} rows={() => rows("total")} />
    </>
  );
}

// Paths whose own weight changed most: no change is counted at its ancestors again.
function ChangeTable({ model, weight }: FlameTablesProps) {
  const { tree } = model, unit = weightUnits[weight]!;
  const before = model.weights(weight, "before").self, after = model.weights(weight, "after").self;
  const path = (node: number): string => {
    const names = [clipped(tree.names[node]!)];
    for (let at = tree.parent[node]!; at > 0; at = tree.parent[at]!) names.unshift(shortName(tree.names[at]!));
    return names.join(" › ");
  };
  const rows = () => Array.from(before, (_, node) => node)
    .filter((node) => relativeChange(before[node]!, after[node]!) !== 0)
    .sort((a, b) => Math.abs(after[b]! - before[b]!) - Math.abs(after[a]! - before[a]!)).slice(0, most)
    .map((node) => [path(node), lookOf(tree.kinds[node]!, "").name, inUnit(before[node]!, unit), inUnit(after[node]!, unit),
      `${after[node]! > before[node]! ? "+" : ""}${inUnit(after[node]! - before[node]!, unit)}`, changed(before[node]!, after[node]!)]);
  return (
    <DataTable title={`Paths whose own ${weightNames[weight]} changed most`}
               columns={[...frameColumns, ...["before", "after", "change", "relative"].map((name) => ({ name, number: true }))]}
               rows={rows} />
  );
}
