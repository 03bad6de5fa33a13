// The key figures of a run in one strip; only what is known.
import { byWarmTime, list, type Report, type Row } from "../data";
import { shown } from "../parts";
import { bytesText, count, shareText, timeText } from "../text";

export interface Figure { name: string; value: string; of: string; meaning: string }

const leastConfidence = 0.6;  // below, a stage is a guess

const known = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isFact = (stage: Row): boolean => (stage["confidence"] ?? 1) >= leastConfidence;

function measure(report: Report, name: string): number | null {
  return list(report["measures"]).find((each) => each["name"] === name)?.["value"] ?? null;
}

// The median of the training steps, the first apart: it warms up.
function trainingStep(report: Report): { ns: number; tokens: number } | null {
  const steps = list(list(report["training"])[0]?.["steps"]).slice(1);
  const sorted = [...steps].sort((a, b) => a["total_ns"] - b["total_ns"]), middle = sorted[(sorted.length - 1) >> 1];
  return middle && known(middle["total_ns"]) && middle["total_ns"] > 0 ? { ns: middle["total_ns"], tokens: middle["tokens"] ?? 0 } : null;
}

export function keyFigures(report: Report): Figure[] {
  const figures: Figure[] = [];
  const add = (name: string, value: unknown, text: (value: number) => string, of: string, meaning: string) => {
    if (known(value)) figures.push({ name, value: text(value), of, meaning });
  };
  const rate = (value: number) => count(value);
  add("Wall time", report["life"]?.["time_ns"] ?? report["coverage"]?.["wall_ns"], timeText, "", "from the start of the program to its end");
  const stages = byWarmTime(report).filter(isFact), stage = stages[0], training = trainingStep(report);
  if (training) {
    add("Step", training.ns, timeText, "median", "median duration of a training step, without the first");
    if (training.tokens > 0)
      add("Tokens/s", (training.tokens / training.ns) * 1e9, rate, "median step", "tokens of the median training step by its duration");
  }
  if (stage) {
    const name = shown(stage["name"]), of = (key: string): unknown => stages.find((each) => known(each[key]))?.[key];
    if (!training) {
      const requests = report["requests"];
      const latency = (metric: string): unknown =>
        list(requests?.["latencies"]).find((each) => each["metric"] === metric && each["source"] === requests["source"])?.["p50_ns"];
      if (known(latency("TTFT"))) {  // of requests, not of the steps that worked for them
        add("Tokens/s", requests["output_tokens_per_s"], rate, "output", "output tokens per second, from the first arrival to the last end");
        add("TTFT", latency("TTFT"), timeText, "median of requests", "arrival to first token");
        add("TPOT", latency("TPOT"), timeText, "median of requests", "time per output token after the first");
      } else {
        add("Tokens/s", stage["tokens_per_s"], rate, name, "tokens per second of this stage, without warm-up");
        add("TTFT", of("ttft_ns"), timeText, "median", "time to first token");
        add("TPOT", of("tpot_p50_ns"), timeText, "median", "time per output token");
      }
      if (!known(of("tpot_p50_ns"))) add("Step", stage["step_p50_ns"], timeText, `${name}, median`, "median duration of a step of this stage");
    }
    add("MFU", stage["mfu"], shareText, name, "model FLOPs by time, of the device's peak (Stages has the denominator)");
    add("MBU", stage["mbu"], shareText, name, "bytes that must move by time, of the device's peak bandwidth");
    const gpu = list(report["devices"])[0]?.["kind"] === "gpu";
    add(gpu ? "GPU busy" : "Busy", stage["steady_busy"] ?? stage["busy"], shareText, name,
      "of this stage's time, without warm-up, with at least one kernel executing");
  }
  const device = measure(report, "run.device_memory_peak");
  if (device !== null) add("GPU memory peak", device, bytesText, "", "memory in use on the device");
  else add("Memory peak", measure(report, "run.host_memory_peak"), bytesText, "host", "resident memory of the program's processes");
  return figures;
}

export function KeyFigures({ report }: { report: Report }) {
  const figures = keyFigures(report);
  if (figures.length === 0) return null;
  return (
    <dl class="figures" aria-label="Key figures">
      {figures.map(({ name, value, of, meaning }) => (
        <div key={name} title={meaning}><dt>{name}{of && <small> {of}</small>}</dt><dd>{value}</dd></div>
      ))}
    </dl>
  );
}
