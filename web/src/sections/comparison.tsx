// Runs compared: what changed, whether that is more than noise, and why.
import type { Diff, DiffRow } from "../data";
import { measureText, shareText } from "../format";
import { Name, shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { FlameGraph } from "../pictures/flame_graph";

const signed = (share: number | null): string => (share !== null && share > 0 ? "+" : "") + shareText(share);
const marks = { better: "✓ better", worse: "▲ worse", neither: "" };
const columns: Column<DiffRow>[] = [
  { title: "What", value: (row) => row.name, show: (row) => <Name text={row.name} /> },
  { title: "Kind", value: (row) => row.kind },
  { title: "Stage", value: (row) => row.stage ?? "" },
  { title: "Before", value: (row) => row.before, show: (row) => measureText(row.before, row.unit), number: true },
  { title: "After", value: (row) => row.after, show: (row) => measureText(row.after, row.unit), number: true },
  { title: "Change", value: (row) => row.change, show: (row) => signed(row.change), number: true, hint: "of the value before" },
  { title: "95 % interval", value: (row) => row.low, number: true,
    show: (row) => (row.low === null ? "" : `${signed(row.low)} … ${signed(row.high)}`) },
  { title: "Verdict", value: (row) => (row.significant ? marks[row.better] || "changed" : "no significant change") },
  { title: "Why", value: (row) => row.why.join("; "), show: (row) => <span class="long">{shown(row.why.join("; "))}</span> },
];

// What changed for certain stands first, the stages and modules among it before single numbers.
const kinds = ["stage", "module", "operator", "shape", "measure", "kernel"];
export function bySignificance(rows: DiffRow[]): DiffRow[] {
  const rank = (row: DiffRow) => (row.significant ? 0 : kinds.length) + kinds.indexOf(row.kind);
  return [...rows].sort((a, b) => rank(a) - rank(b));
}

export function Comparison({ diffs }: { diffs: Diff[] }) {
  return (
    <Section id="comparison" title="Comparison">
      {diffs.map((diff, at) => <OneComparison key={at} diff={diff} />)}
    </Section>
  );
}

function OneComparison({ diff }: { diff: Diff }) {
  const flame = diff.flame && diff.flame.parent.length > 1 ? diff.flame : null;
  return (
    <>
      <h3>{shown(diff.before)} → {shown(diff.after)}</h3>
      {diff.headline && <p class="headline">{shown(diff.headline)}</p>}
      {diff.rows.length > 0 && <Table caption="Changes" columns={columns} rows={bySignificance(diff.rows)} filter="Filter" />}
      {flame && <h4>Where the time changed</h4>}
      {flame && <FlameGraph diff={flame} />}
      {diff.rows.length === 0 && <Empty>Intervals and reasons: <code>llmprof diff</code>.</Empty>}
    </>
  );
}
