// How each number was obtained, and what was looked for.
import type { Measure } from "../data";
import { measureText } from "../format";
import { long, name } from "../parts/columns";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { type Column, Table } from "../parts/table";
import { Value } from "../parts/unknown";
import { list, type Row, type View } from "../view";

const full = (row: Measure): string => (row.scope && !row.name.startsWith(`${row.scope}.`) ? `${row.scope}.${row.name}` : row.name);
const measures: Column<Measure>[] = [
  { title: "Number", value: full, show: (row) => <code>{shown(full(row))}</code> },
  { title: "Value", value: (row) => row.value, number: true,
    show: (row) => <Value text={measureText(row.value, row.unit)} why={row.why} /> },
  { title: "Source", value: (row) => row.source },
  { title: "Meaning", value: (row) => row.meaning, show: (row) => <span class="long">{shown(row.meaning)}</span> },
  { title: "Formula", value: (row) => row.formula, show: (row) => <span class="long">{shown(row.formula)}</span> },
  { title: "Of", value: (row) => row.of ?? "" },
];

const marks: Record<string, string> = { found: "▲", inconclusive: "?", "not found": "✓", "not applicable": "–" };
const outcome = (row: Row): string => `${marks[row["outcome"]] ?? ""} ${row["outcome"]}`;
const rules: Column<Row>[] = [
  { title: "Rule", value: (row) => row["title"] ?? row["rule"] },
  { title: "Outcome", value: outcome, show: (row) => <span class="word">{shown(outcome(row))}</span> },
  long("Because", "why"), name("Name", "rule"),
];

export function Numbers({ view }: { view: View }) {
  const all = view.data.report.measures ?? [], looked = list(view.data.report.diagnosis?.rules);
  return (
    <Section id="numbers" title="How each number was obtained"
             lead="measured: by a clock; counted: events; analytic: from the model's formulas; inferred: concluded from what was seen.">
      {all.length
        ? <Table caption="Numbers and how they were obtained" columns={measures} rows={all} first={12} filter="Filter" />
        : <Empty>This page was made without named measures.</Empty>}
      <h3>What was looked for</h3>
      {looked.length
        ? <Table caption="Rules of the diagnosis" columns={rules} rows={looked} first={40} />
        : <Empty>No rule of the diagnosis was applied.</Empty>}
    </Section>
  );
}
