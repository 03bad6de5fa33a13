// Runs compared: what changed, whether that is more than noise, and why.
import type { Diff, DiffRow, Row } from "../data";
import { Empty, Section, shown } from "../parts";
import { FlameGraph } from "../pictures/flame/view";
import { column, type Description, Table } from "../table";
import { shareText } from "../text";

const signed = (share: number | null): string => (share !== null && share > 0 ? "+" : "") + shareText(share);
const marks = { better: "✓ better", worse: "▲ worse", neither: "" };
const changes: Description = { name: "changes", title: "Changes", columns: [
  column("name", "What", "name"), column("word", "Kind", "kind"), column("word", "Stage", "stage"), column("measure", "Before", "before"),
  column("measure", "After", "after"),
  column("share", "Change", "change", "of the value before", { show: (row) => signed(row["change"]) }),
  column("share", "95 % interval", "low", "", { show: (row) => (row["low"] === null ? "" : `${signed(row["low"])} … ${signed(row["high"])}`) }),
  column("text", "Verdict", "verdict"), column("sentence", "Why", "reasons"),
] };
const verdict = (row: DiffRow): string => {
  if (row.comparable === false) return "other work";
  return row.significant ? marks[row.better] || "changed" : "no significant change";
};
const described = (row: DiffRow): Row => ({
  ...row, name: row.per && row.per !== "step" && row.kind !== "pace" ? `${row.name}, per ${row.per}` : row.name,
  stage: row.stage ?? "", reasons: row.why.join("; "), verdict: verdict(row),
});

// What changed for certain stands first, the stages and modules among it before single numbers.
const kinds = ["pace", "stage", "module", "operator", "shape", "measure", "kernel"];
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
      {diff.work?.text && <p>{shown(diff.work.text)}</p>}
      {diff.headline && <p class="headline">{shown(diff.headline)}</p>}
      <Table description={changes} rows={bySignificance(diff.rows).map(described)} />
      {flame && <h4>Where the time changed</h4>}
      {flame && <FlameGraph diff={flame} />}
      {diff.rows.length === 0 && <Empty>Intervals and reasons: <code>llmprof diff</code>.</Empty>}
    </>
  );
}
