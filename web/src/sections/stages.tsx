// A card per stage: its rates, and its steps over time.
import { list, type Report, type Row, type StepCurve, type View } from "../data";
import { described, DescribedTable } from "../described";
import { Empty, Section, shown, Value } from "../parts";
import { Sparkline, StepCurves } from "../pictures/charts";
import { categoryVariable, clamp, stageCategory } from "../pictures/drawing";
import { cellText, column, type Description, Table } from "../table";
import { bandwidthText, countText, flopsText, plural, shareText, timeText } from "../text";

export function Stages({ view }: { view: View }) {
  const report = view.data.report, stages = list(report["stages"]), curves = view.data.steps ?? [];
  const several = curves.filter((curve) => curve.duration_ns.length > 1);
  return (
    <Section id="stages" title="Stages" lead={<Denominators report={report} />}>
      {stages.length === 0 && <Empty>No stage was declared or recognised in this run.</Empty>}
      <div class="cards">
        {stages.map((stage) => <StageCard key={stage["name"]} report={report} stage={stage} curves={curves} />)}
      </div>
      <DescribedTable report={report} path="stages[]#times" />
      <DescribedTable report={report} path="stages[]#efficiency" />
      <DescribedTable report={report} path="life.phases[]" title="Life of the program" />
      <h3>Steps over time</h3>
      {several.length
        ? <StepCurves curves={several} />
        : <Empty>No stage has more than one step.</Empty>}
    </Section>
  );
}

function Denominators({ report }: { report: Row }) {
  const peaks: Row = report["peaks_together"] ?? {}, device: Row = list(report["devices"])[0] ?? {};
  const flops = typeof peaks["flops"] === "number", bandwidth = typeof peaks["bandwidth"] === "number";
  const from = [device["peak_bandwidth_name"], shown(device["peak_bandwidth_source"])].filter(Boolean).join(", ");
  return (
    <>
      {flops
        ? `MFU is of ${flopsText(peaks["flops"])} ${shown(device["type"])} (${shown(device["peak_flops_source"])})`
        : "No peak FLOP/s is known: no MFU"},
      {" "}{bandwidth ? `MBU of ${bandwidthText(peaks["bandwidth"])} (${from})` : "no peak bandwidth: no MBU"};
      {" "}busy is of the stage's time.
    </>
  );
}

// What stands on a card, the first that is known in large letters.
const onCard = ["ttft_ns", "latency_p50_ns", "latency_p90_ns", "latency_p99_ns", "mfu", "mbu", "joules_per_token", "busy", "tokens_per_s"];

export function stageNumbers(report: Report, stage: Row): { term: string; text: string; why: string | null }[] {
  const row: Row = { ...list(report["telemetry"]?.["stages"]).find((each) => each["stage"] === stage["name"]), ...stage };
  const columns = described(report, ["stages[]#times", "stages[]#efficiency", "telemetry.stages[]"])?.columns ?? [];
  return onCard.flatMap((key) => columns.filter((each) => each.key === key && (row[key] !== null || !key.endsWith("_ns"))))
    .map((each) => ({ term: each.title, text: cellText(row, each), why: row[each.key === "joules_per_token" ? "energy_why" : "why"] ?? null }))
    .filter(({ text }) => text !== "");
}

function StageCard({ report, stage, curves }: { report: Row; stage: Row; curves: StepCurve[] }) {
  const name = String(stage["name"]);
  const curve = curves.find((each) => each.stage === name);
  return (
    <article class="card" aria-label={`Stage ${shown(name)}`}>
      <h3><span class="swatch" style={{ background: `var(${categoryVariable(stageCategory(name))})` }} />{shown(name)}</h3>
      <p class="dim">
        {plural(stage["steps"] ?? 0, "step")}, {timeText(stage["time_ns"])}, {shareText(stage["share"])} of the run;
        {" "}{plural(stage["kernels"] ?? 0, "kernel")}
        {stage["source"] === "inferred" ? "; inferred" : ""}
      </p>
      <dl>
        {stageNumbers(report, stage).map(({ term, text, why }, at) => (
          <div key={term} class={at === 0 ? "big" : ""}><dt>{term}</dt><dd><Value text={text} why={why} /></dd></div>
        ))}
      </dl>
      {curve && curve.duration_ns.length > 1 &&
        <Sparkline values={curve.duration_ns} label={`${shown(name)}, time of ${curve.steps} steps`} />}
    </article>
  );
}

// From the measured time down to the floor: what is taken off, one after the other. The rows add up to 100 %.
export function Waterfall({ view }: { view: View }) {
  const all = list(view.data.report["waterfalls"]);
  return (
    <Section id="waterfall" title="Waterfall to the floor"
             lead="What the measured time consists of, down to the least time that the device's peaks allow. Each table adds up to 100 %.">
      {all.length === 0 && <Empty>No stage of this run has steps to take apart.</Empty>}
      {all.map((each) => <OneWaterfall key={each["stage"]} waterfall={each} />)}
    </Section>
  );
}

// Bars hang from 1 (all of it) down to the floor at 0: `from` and `to` are of the picture's width.
export function bars(waterfall: Row): Row[] {
  const measured = Number(waterfall["measured_ns"]), samples = Math.max(1, Number(waterfall["samples"]));
  const out: Row[] = [];
  let at = 1;
  for (const term of list(waterfall["terms"])) {
    if (term["share"] === 0) continue;
    const share: number | null = term["share"] ?? null, next = at - (share ?? 0);
    out.push({ ...term, label: term["label"] ?? term["name"], share, from: Math.min(at, next), to: Math.max(at, next),
               kind: (share ?? 0) < 0 ? "less" : term["name"] });
    at = next;
  }
  const floor = waterfall["floor_ns"], known = typeof floor === "number" && measured > 0;
  out.push({ label: "floor: at the device's peaks", mean_ns: known ? floor / samples : null, share: known ? floor / measured : null,
             from: 0, to: known ? Math.max(0, at) : 0, kind: "floor", why: waterfall["why"] ?? null });
  return out;
}

function OneWaterfall({ waterfall }: { waterfall: Row }) {
  const rows = bars(waterfall), title = `${shown(waterfall["stage"])}: ${shown(waterfall["quantity"])}`;
  const sum = rows.reduce((total, row) => total + (row["share"] ?? 0), 0);
  const description: Description = { name: "waterfall", title, rows_shown: 100, columns: [
    column("text", "Part", "label", "", { show: ({ label, kind }) => (kind === "floor" || kind === "" ? <b>{label}</b> : shown(label)) }),
    column("ns", "Mean time", "mean_ns", "", { why: "why" }), column("share", "Share", "share"),
    column("text", "100 % down to the floor", "from", "", { show: (row) => <Fall bar={row} /> }),
  ] };
  return (
    <>
      <h3>{title} <small>mean {timeText(waterfall["mean_ns"])} of {countText(waterfall["samples"])}</small></h3>
      <Table description={description}
             rows={[...rows, { label: "measured", mean_ns: waterfall["mean_ns"], share: sum, from: 0, to: 1, kind: "" }]} />
    </>
  );
}

function Fall({ bar }: { bar: Row }) {
  if (bar["kind"] === "") return null;
  const from = clamp(bar["from"], 0, 1), to = clamp(bar["to"], 0, 1);
  const style = { left: `${from * 100}%`, width: `${Math.max(0.2, (to - from) * 100)}%` };
  return <span class={`fallbar ${bar["kind"]}`} aria-hidden="true"><span style={style} /></span>;
}
