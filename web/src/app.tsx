// The page: header, contents, sections in the order in which a reader asks.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Diff, RunData, Source } from "./data";
import { Masthead } from "./masthead";
import { useOpenInPrint, usePrinting } from "./parts/printing";
import { Comparison } from "./sections/comparison";
import { Counters } from "./sections/counters";
import { Environment } from "./sections/environment";
import { FlameSection } from "./sections/flame";
import { Functions } from "./sections/functions";
import { Gemms } from "./sections/gemms";
import { Kernels } from "./sections/kernels";
import { Losses } from "./sections/losses";
import { Memory } from "./sections/memory";
import { Modules } from "./sections/modules";
import { Numbers } from "./sections/numbers";
import { RooflineSection } from "./sections/roofline";
import { Stages } from "./sections/stages";
import { Summary } from "./sections/summary";
import { Telemetry } from "./sections/telemetry";
import { TimelineSection } from "./sections/timeline";
import { Waterfall } from "./sections/waterfall";
import type { View } from "./view";

export const sections: { id: string; title: string; part: ComponentType<{ view: View }> }[] = [
  { id: "summary", title: "Summary", part: Summary },
  { id: "stages", title: "Stages", part: Stages },
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
    source.run(index).then((run) => wanted && setData(run), (error: unknown) => wanted && setProblem(error));
    return () => { wanted = false; };
  }, [source, index]);
  useEffect(() => { source.diffs().then(setDiffs, setProblem); }, [source]);
  if (problem) return <Failure error={problem} />;
  if (!data) return <main><p role="status">Reading the run …</p></main>;
  const view = { source, index, data };
  return (
    <>
      <a class="skip" href="#main">Skip to the summary</a>
      <Masthead view={view} onPick={setIndex} />
      <div class="page">
        <Contents compared={diffs.length > 0} />
        <main id="main" tabIndex={-1} key={index}>
          {diffs.length > 0 && <Comparison diffs={diffs} />}
          {sections.map(({ id, part: Part }) => <Part key={id} view={view} />)}
        </main>
      </div>
    </>
  );
}

function Contents({ compared }: { compared: boolean }) {
  const all = compared ? [{ id: "comparison", title: "Comparison" }, ...sections] : sections;
  return (
    <nav aria-label="Contents">
      <ul>{all.map(({ id, title }) => <li key={id}><a href={`#${id}`}>{title}</a></li>)}</ul>
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
