// The program and the machine: host functions, environment, what was lost, how numbers were obtained.
import { list, type Report, type Row, type View } from "../data";
import { DescribedTable, drawable, type Own } from "../described";
import { Empty, Section, shown } from "../parts";
import { column, type Description, Table } from "../table";
import { bytesText, countText, plural, shareText, timeText } from "../text";

const commandLine: Own = { arguments: { title: "command line", format: "name" } };

export function Functions({ view }: { view: View }) {
  const report = view.data.report, any = list(report["functions"]).length > 0, stacks: Row = report["stacks"] ?? {};
  const lead = `${plural(stacks["samples"] ?? 0, "CPU sample")} that stand for ${timeText(stacks["sampled_ns"])}.`;
  return (
    <Section id="functions" title="Host functions" lead={any ? lead : undefined}>
      <DescribedTable report={report} path="functions[]" none={`No CPU stacks: ${shown(stacks["why"] ?? "they were not sampled")}.`} />
      <DescribedTable report={report} path="host.processes[]" order="-cpu_ns" rows_shown={8} own={commandLine}
                      none={`No process was read: ${shown(report["host"]?.["why"] ?? "not recorded")}.`} />
    </Section>
  );
}

// Tables that the report describes and no other section draws: a new one needs nothing here.
const elsewhere = ["stages", "modules", "operators", "gemms", "attention", "kernels", "framework_operators", "totals", "host.gains",
                   "telemetry.stages", "metrics.gauges", "metrics.counters", "metrics.latencies", "counters", "measures",
                   "functions", "host.processes", "life.phases"];

export const moreTables = (report: Report): string[] => drawable(report)
  .filter((path) => !/^(hardware_counters|requests)\./.test(path) && !elsewhere.includes(path.replace(/\[.*/, "")));

export function MoreTables({ view: { data: { report } } }: { view: View }) {
  return (
    <Section id="tables" title="More tables">
      {moreTables(report).map((path) => <DescribedTable key={path} report={report} path={path} />)}
    </Section>
  );
}

const devices: Own = {
  name: "device", chip: "chip", driver: "driver", memory_bytes: "memory", type: "type", peak_flops: { title: "peak FLOP/s", format: "measure" },
  peak_flops_source: { title: "FLOP/s from", show: (row) => from(row, "peak_flops") },
  peak_bandwidth: { title: "peak bandwidth", format: "measure" },
  peak_bandwidth_source: { title: "bandwidth from", show: (row) => from(row, "peak_bandwidth") },
};
const from = (row: Row, key: string): string => [row[`${key}_source`], row[`${key}_method`]].filter(Boolean).map(shown).join(": ");

const facts = (name: string, title: string): Description => ({ name, title, rows_shown: 12, columns: [
  column("name", "Name", "name"), column("text", "Value", "value", "", { show: (row) => <span class="value">{shown(row["value"])}</span> }),
] });

// {"cpu": {"name": "X"}} as {name: "cpu.name", value: "X"}; what is null is left out.
export function flat(value: unknown, name = ""): Row[] {
  if (value === null || value === undefined) return [];
  if (typeof value === "number" && /(^|[._])bytes$/.test(name)) return [{ name, value: bytesText(value) }];
  if (typeof value !== "object") return [{ name, value: String(value) }];
  if (Array.isArray(value) && value.every((each) => typeof each !== "object")) return value.length ? [{ name, value: value.join(", ") }] : [];
  return Object.entries(value as Row).flatMap(([key, inner]) => flat(inner, name ? `${name}.${key}` : key));
}

export function Environment({ view }: { view: View }) {
  const report = view.data.report, card = flat(report["environment"]), model = flat(report["model"]?.["config"]);
  return (
    <Section id="environment" title="Environment">
      <DescribedTable report={report} path="devices[]" own={devices} title="Devices and their peaks" none="No device is known." />
      <h3>Machine</h3>
      {card.length
        ? <Table description={facts("environment", "Machine")} rows={card} />
        : <Empty>The machine is not known: the run was imported from a file that does not tell.</Empty>}
      <h3>Model</h3>
      {model.length
        ? <Table description={facts("model", "Model")} rows={model} />
        : <Empty>The model is not known: {shown(report["model"]?.["why"] ?? "nobody declared it")}.</Empty>}
    </Section>
  );
}

const severities: Record<string, string> = { data_loss: "▲ data lost", degraded: "◆ degraded", info: "i info" };
const losses: Own = {
  name: "loss",
  severity: { title: "severity", format: "word", show: ({ severity }) => <span class="word">{severities[severity] ?? shown(severity)}</span> },
  count: { title: "count", show: (row) => `${countText(row["count"])} ${shown(row["unit"])}` },
  meaning: { title: "meaning", format: "sentence" }, detail: { title: "detail", format: "sentence" }, remedy: { title: "remedy", format: "sentence" },
};
const gaps: Own = { why: { title: "not recorded because", format: "sentence" }, stage: "stage", gaps: "gaps", time_ns: "time" };

export function Losses({ view }: { view: View }) {
  const report = view.data.report, notes = list(report["notes"]);
  return (
    <Section id="losses" title="Losses" lead="What was lost or not seen, worst first, and what recording itself cost.">
      <DescribedTable report={report} path="losses[]" own={losses} none="Nothing was lost." />
      <DescribedTable report={report} path="gaps[]" own={gaps} title="Time that was not recorded" />
      {notes.length > 0 && <h3>Notes</h3>}
      {notes.length > 0 && <ul>{notes.map((note, at) => <li key={at}><b>{shown(note["subject"])}:</b> {shown(note["text"])}</li>)}</ul>}
      <h3>Coverage</h3>
      <p>{coverage(report["coverage"] ?? {})}</p>
      <h3>Cost of recording</h3>
      <p>{cost(report["recording_cost"] ?? {})}</p>
    </Section>
  );
}

function coverage(row: Row): string {
  const placed = shareText(row["gpu_placed_ns"] / row["gpu_ns"]);
  const gpu = row["gpu_ns"] > 0 ? ` ${placed} of ${timeText(row["gpu_ns"])} GPU time has a stage and a kernel.` : "";
  const things = [plural(row["processes"] ?? 0, "process", "processes"), plural(row["threads"] ?? 0, "thread"),
                  plural(row["kernels"] ?? 0, "kernel"), plural(row["ranges"] ?? 0, "range"), plural(row["gemms"] ?? 0, "matrix product")];
  return `${things.join(", ")} in ${timeText(row["wall_ns"])}; ${timeText(row["in_stages_ns"])} of that in stages.${gpu}`;
}

export function cost(row: Row): string {
  if (typeof row["delay_ns"] !== "number") return `Not known${row["why"] ? `: ${shown(row["why"])}` : ", the run was not recorded by llmprof"}.`;
  const timing = typeof row["timing_ns"] === "number"
    ? ` Timing ${plural(row["timed_kernels"], "kernel")} delayed it by about ${timeText(row["timing_ns"])} more, ` +
      "if each takes what it does on an H200." : "";
  return `Events delayed threads by an estimated ${timeText(row["delay_ns"])}, ${shareText(row["delay_share"])} of the run's wall time; ` +
    `${bytesText(row["log_bytes"])} of logs, ${timeText(row["writer_cpu_ns"])} CPU time of writer threads, ` +
    `${timeText(row["recorder_cpu_ns"])} of the recorder, which a program that keeps all cores busy waits for.` +
    `${timing}${measuredCost(row["stages"] ?? [])}`;
}

/** What the run itself tells: a stage's steps with recording against those without. */
function measuredCost(stages: Row[]): string {
  return stages.filter((stage) => stage["measured"]).map((stage) => {
    const { ratio, low, high } = stage["measured"] as { ratio: number; low: number; high: number };
    const times = `${ratio.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}] times as long`;
    return low > 1 ? ` Measured: recorded, a step of ${shown(stage["name"])} is ${times} (95 % interval).`
                   : ` Measured: what recording costs a step of ${shown(stage["name"])} cannot be told from nothing (${times}, 95 % interval).`;
  }).join("");
}

const marks: Record<string, string> = { found: "▲", inconclusive: "?", "not found": "✓", "not applicable": "–" };
const measures: Description = { name: "measures", title: "Numbers and how they were obtained", rows_shown: 12, columns: [
  column("name", "Number", "full_name"), column("measure", "Value", "value", "", { why: "why" }), column("word", "Source", "source"),
  column("sentence", "Meaning", "meaning"), column("sentence", "Formula", "formula"), column("sentence", "Of", "of"),
] };
const rules: Description = { name: "rules", title: "What was looked for", rows_shown: 40, columns: [
  column("text", "Rule", "title"), column("word", "Outcome", "outcome"), column("sentence", "Because", "why"), column("name", "Name", "rule"),
] };

export function Numbers({ view }: { view: View }) {
  const { measures: all = [], diagnosis } = view.data.report;
  const full = all.map((row): Row =>
    ({ ...row, full_name: row.scope && !row.name.startsWith(`${row.scope}.`) ? `${row.scope}.${row.name}` : row.name }));
  const looked = list(diagnosis?.rules).map((row): Row =>
    ({ ...row, title: row["title"] ?? row["rule"], outcome: `${marks[row["outcome"]] ?? ""} ${row["outcome"]}` }));
  return (
    <Section id="numbers" title="How each number was obtained"
             lead="measured: by a clock; counted: events; analytic: from the model's formulas; inferred: concluded from what was seen.">
      {full.length ? <Table description={measures} rows={full} /> : <Empty>This page was made without named measures.</Empty>}
      <h3>What was looked for</h3>
      {looked.length ? <Table description={rules} rows={looked} /> : <Empty>No rule of the diagnosis was applied.</Empty>}
    </Section>
  );
}
