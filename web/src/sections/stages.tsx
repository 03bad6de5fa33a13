// A card per stage: its rates, and its steps over time.
import type { StepCurve } from "../data";
import { bandwidthText, countText, flopsText, joulesText, type Maybe, plural, shareText, timeText, unknown } from "../format";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { Value } from "../parts/unknown";
import { Sparkline } from "../pictures/sparkline";
import { StepCurves } from "../pictures/step_curves";
import { list, type Row, type View } from "../view";

export function Stages({ view }: { view: View }) {
  const report = view.data.report, stages = list(report["stages"]), curves = view.data.steps ?? [];
  const several = curves.filter((curve) => curve.duration_ns.length > 1);
  return (
    <Section id="stages" title="Stages" lead={<Denominators report={report} />}>
      {stages.length === 0 && <Empty>No stage was declared or recognised in this run.</Empty>}
      <div class="cards">
        {stages.map((stage) => <StageCard key={stage["name"]} report={report} stage={stage} curves={curves} />)}
      </div>
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

interface Number { term: string; text: string; why?: string | null; big?: boolean }

export function stageNumbers(stage: Row, telemetry: Row | undefined): Number[] {
  const numbers: Number[] = [];
  const add = (term: string, text: string, why?: string | null, big = false) => numbers.push({ term, text, why: why ?? null, big });
  const has = (key: string) => typeof stage[key] === "number";
  if (has("ttft_ns")) add("TTFT", timeText(stage["ttft_ns"]), null, true);
  if (has("tpot_p50_ns")) {
    add("TPOT p50", timeText(stage["tpot_p50_ns"]), null, true);
    add("TPOT p90", timeText(stage["tpot_p90_ns"]));
    add("TPOT p99", timeText(stage["tpot_p99_ns"]));
  }
  if (!has("ttft_ns") && !has("tpot_p50_ns")) add("Step p50", timeText(stage["step_p50_ns"]), "it has no steps", true);
  add("MFU", shareText(stage["mfu"]), stage["why"] ?? "the FLOPs of this stage or the device's peak are not known");
  add("MBU", shareText(stage["mbu"]), stage["why"] ?? "the bytes of this stage or the device's peak are not known");
  add("J/token", joulesText(telemetry?.["joules_per_token"]), energyWhy(stage, telemetry));
  add("Busy", shareText(busy(stage)), "no device executed anything");
  add("Tokens/s", countText(stage["tokens_per_s"]), "tokens of this stage are not known");
  return numbers;
}

function energyWhy(stage: Row, telemetry: Row | undefined): string {
  if (!telemetry) return "no power or energy of the device was read";
  return telemetry["energy_why"] ?? (stage["tokens"] ? "the energy of this stage is not known" : "this stage makes no tokens");
}

export function busy(stage: Row): Maybe {
  const working = stage["device_busy_ns"], idle = stage["idle_ns"];
  return typeof working === "number" && typeof idle === "number" && working + idle > 0 ? working / (working + idle) : null;
}

function StageCard({ report, stage, curves }: { report: Row; stage: Row; curves: StepCurve[] }) {
  const name = String(stage["name"]);
  const telemetry = list(report["telemetry"]?.["stages"]).find((each) => each["stage"] === name);
  const curve = curves.find((each) => each.stage === name);
  return (
    <article class="card" aria-label={`Stage ${shown(name)}`}>
      <h3>{shown(name)}</h3>
      <p class="dim">
        {plural(stage["steps"] ?? 0, "step")}, {timeText(stage["time_ns"])}, {shareText(stage["share"])} of the run;
        {" "}{plural(stage["kernels"] ?? 0, "kernel")}
        {stage["source"] === "inferred" ? "; inferred" : ""}
      </p>
      <dl>
        {stageNumbers(stage, telemetry).map(({ term, text, why, big }) => (
          <div key={term} class={big ? "big" : ""}><dt>{term}</dt><dd><Value text={text || unknown} why={why} /></dd></div>
        ))}
      </dl>
      {curve && curve.duration_ns.length > 1 &&
        <Sparkline values={curve.duration_ns} label={`${shown(name)}, time of ${curve.steps} steps`} />}
    </article>
  );
}
