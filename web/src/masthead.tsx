// Which run this is: name, command, date, device, model; the picker when there are several; light or dark.
import { useEffect, useState } from "preact/hooks";
import { dateText, parametersText } from "./format";
import { Name, shown } from "./parts/name";
import { list, type Row, type View } from "./view";

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
        <Fact term="Recorded by">{origin(report, run)}</Fact>
      </dl>
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
