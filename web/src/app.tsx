// The page: header, contents, sections in the order in which a reader asks.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Diff, list, type Report, type Row, type RunData, type Source, type View } from "./data";
import { Name, shown, useOpenInPrint, usePrinting } from "./parts";
import { Comparison } from "./sections/comparison";
import { Counters } from "./sections/counters";
import { Gemms, Kernels, Memory, Telemetry } from "./sections/device";
import { Modules } from "./sections/modules";
import { hasRequests, Requests } from "./sections/requests";
import { FlameSection, RooflineSection, TimelineSection } from "./sections/pictures";
import { KeyFigures } from "./sections/figures";
import { Environment, Functions, Losses, MoreTables, moreTables, Numbers } from "./sections/run";
import { Stages, Waterfall } from "./sections/stages";
import { Summary } from "./sections/summary";
import { assignStages } from "./pictures/drawing";
import { dateText, parametersText } from "./text";

interface Part { id: string; title: string; part: ComponentType<{ view: View }>; when?: (report: Report) => boolean }
export const sections: Part[] = [
  { id: "summary", title: "Summary", part: Summary },
  { id: "stages", title: "Stages", part: Stages },
  { id: "requests", title: "Requests", part: Requests, when: hasRequests },
  { id: "waterfall", title: "Waterfall", part: Waterfall },
  { id: "roofline", title: "Roofline", part: RooflineSection },
  { id: "timeline", title: "Timeline", part: TimelineSection },
  { id: "flame", title: "Flame graph", part: FlameSection },
  { id: "modules", title: "Modules", part: Modules },
  { id: "gemms", title: "GEMM shapes", part: Gemms },
  { id: "kernels", title: "Kernels", part: Kernels },
  { id: "memory", title: "Memory", part: Memory },
  { id: "counters", title: "Counters", part: Counters },
  { id: "telemetry", title: "Telemetry", part: Telemetry },
  { id: "functions", title: "Host functions", part: Functions },
  { id: "tables", title: "More tables", part: MoreTables, when: (report) => moreTables(report).length > 0 },
  { id: "environment", title: "Environment", part: Environment },
  { id: "losses", title: "Losses", part: Losses },
  { id: "numbers", title: "How each number was obtained", part: Numbers },
];

export function App({ source }: { source: Source }) {
  const [index, setIndex] = useState(0);
  const [data, setData] = useState<RunData | null>(null);
  const [diffs, setDiffs] = useState<Diff[]>([]);
  const [problem, setProblem] = useState<unknown>(null);
  useOpenInPrint(usePrinting());
  useEffect(() => {
    let wanted = true;
    setProblem(null);
    source.run(index).then((run) => { if (wanted) { assignStages(stagesOf(run)); setData(run); } }, (error: unknown) => wanted && setProblem(error));
    return () => { wanted = false; };
  }, [source, index]);
  useEffect(() => { source.diffs().then(setDiffs, setProblem); }, [source]);
  if (problem) return <Failure error={problem} />;
  if (!data) return <main><p role="status">Reading the run …</p></main>;
  const view = { source, index, data }, parts = sections.filter(({ when }) => !when || when(data.report));
  return (
    <>
      <a class="skip" href="#main">Skip to the summary</a>
      <Masthead view={view} onPick={setIndex} />
      <div class="page">
        <Contents parts={diffs.length > 0 ? [{ id: "comparison", title: "Comparison" }, ...parts] : parts} />
        <main id="main" tabIndex={-1} key={index}>
          {diffs.length > 0 && <Comparison diffs={diffs} />}
          {parts.map(({ id, part: Part }) => <Part key={id} view={view} />)}
        </main>
      </div>
    </>
  );
}

const stagesOf = (run: RunData): string[] => list(run.report["stages"]).map((stage) => String(stage["name"]));

function Contents({ parts }: { parts: { id: string; title: string }[] }) {
  return (
    <nav aria-label="Contents">
      <ul>{parts.map(({ id, title }) => <li key={id}><a href={`#${id}`}>{title}</a></li>)}</ul>
    </nav>
  );
}

export function Failure({ error }: { error: unknown }) {
  return (
    <main>
      <h1>This page cannot be shown</h1>
      <p role="alert">{error instanceof Error ? error.message : String(error)}</p>
    </main>
  );
}

// Which run this is: name, command, date, device, model; the picker when there are several; light or dark.
export function Masthead({ view, onPick }: { view: View; onPick: (index: number) => void }) {
  const report = view.data.report, run: Row = report["run"] ?? {}, command: unknown = run["command"];
  const names = view.source.runs(), job: unknown = report["job"]?.["sentence"];
  useEffect(() => { document.title = `${shown(view.data.name)} · llmprof`; }, [view.data.name]);
  return (
    <header class="masthead">
      <div class="title">
        <p class="product">llmprof report</p>
        <h1>{shown(view.data.name)}</h1>
        {names.length > 1 && <Picker names={names} index={view.index} onPick={onPick} />}
        <ThemeToggle />
      </div>
      <dl>
        <Fact term="Command">{Array.isArray(command) && command.length ? <Name text={command.join(" ")} /> : "not known"}</Fact>
        <Fact term="Date">{run["created"] ? dateText(run["created"]) : "not known"}</Fact>
        <Fact term="Device">{devices(list(report["devices"]))}</Fact>
        <Fact term="Model">{model(report["model"] ?? {})}</Fact>
        {job && <Fact term="Job">{shown(job)}</Fact>}
        <Fact term={run["prediction"] ? "Origin" : "Recorded by"}>{origin(report, run)}</Fact>
      </dl>
      <KeyFigures report={report} />
    </header>
  );
}

function Fact({ term, children }: { term: string; children: preact.ComponentChildren }) {
  return <div><dt>{term}</dt><dd>{children}</dd></div>;
}

function devices(all: Row[]): string {
  const busy = all.filter((device) => device["kernel_ns"] > 0);
  const names = (busy.length ? busy : all).map((device) => shown(device["name"]));
  const kinds = [...new Set(names)].map((name) => [name, names.filter((each) => each === name).length] as const);
  return kinds.map(([name, times]) => (times > 1 ? `${times} × ${name}` : name)).join(", ") || "none recorded";
}

function model(about: Row): string {
  if (!about["family"]) return `not known${about["why"] ? `: ${shown(about["why"])}` : ""}`;
  const parameters = typeof about["parameters"] === "number" ? `, ${parametersText(about["parameters"])}` : "";
  return `${shown(about["family"])}${parameters} (${shown(about["origin"] ?? about["source"])})`;
}

function origin(report: Row, run: Row): string {
  const sources = list(report["sources"]);
  if (sources.length) return `imported: ${sources.map((each) => shown(each["tool"] ?? each["format"])).join(", ")}`;
  if (run["prediction"]) return `predicted, not measured: ${shown(run["prediction"])}`;
  return `llmprof ${shown(run["recorded_by"] ?? report["llmprof_version"] ?? "")}`;
}

function Picker({ names, index, onPick }: { names: string[]; index: number; onPick: (index: number) => void }) {
  return (
    <label class="picker">Run{" "}
      <select value={String(index)} onChange={(event) => onPick(Number(event.currentTarget.value))}>
        {names.map((name, at) => <option key={at} value={String(at)}>{`${at + 1}. ${shown(name)}`}</option>)}
      </select>
    </label>
  );
}

// The system decides until somebody does.
function ThemeToggle() {
  const [theme, setTheme] = useState<"" | "light" | "dark">("");
  useEffect(() => {
    if (theme) document.documentElement.dataset["theme"] = theme;
    else delete document.documentElement.dataset["theme"];
  }, [theme]);
  return (
    <label class="theme">Colours{" "}
      <select value={theme} onChange={(event) => setTheme(event.currentTarget.value as typeof theme)}>
        <option value="">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}
