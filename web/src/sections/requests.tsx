// Requests that the program served or sent: over time, one by one, and how long they took.
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { type Curve, list, type RequestData, type Report, type Row, type View } from "../data";
import { DescribedTable, drawable, type Own } from "../described";
import { Name, Section, shown } from "../parts";
import { LineChart, type Series } from "../pictures/charts";
import { RequestDetails } from "../pictures/requests/details";
import { type Lane, lanesOf } from "../pictures/requests/model";
import { RequestGantt } from "../pictures/requests/view";
import { column, Table } from "../table";
import { count, plural, timeText } from "../text";

export const hasRequests = (report: Report): boolean => (report["requests"]?.["count"] ?? 0) + (report["requests"]?.["warm_up"] ?? 0) > 0;

export function Requests({ view }: { view: View }) {
  const report = view.data.report, data = view.data.requests;
  return (
    <Section id="requests" title="Requests" lead={lead(report["requests"] ?? {})}>
      {data && <Drawn view={view} data={data} report={report} />}
    </Section>
  );
}

const seenBy: Record<string, string> = {
  server: "as the engine marked them", client: "as their client saw them", predicted: "predicted, not measured",
};

export function lead(requests: Row): string {
  const { count: all = 0, finished = 0, failed = 0, unfinished = 0, warm_up = 0, source } = requests;
  const parts = [`${count(finished)} finished`];
  if (failed > 0) parts.push(`${count(failed)} failed`);
  if (unfinished > 0) parts.push(`${count(unfinished)} without an end`);
  if (warm_up > 0) parts.push(`and ${count(warm_up)} for warming up`);
  const tokens = `${count(requests["output_tokens_per_s"])} output tokens/s in ${timeText(requests["duration_ns"])}`;
  const rate = requests["requests_per_s"] ? `; ${count(requests["requests_per_s"])} requests/s, ${tokens}` : "";
  return `${plural(all, "request")}, ${seenBy[source] ?? `seen by ${shown(source)}`}: ${parts.join(", ")}${rate}.`;
}

function Drawn({ view, data, report }: { view: View; data: RequestData; report: Report }) {
  const [selected, setSelected] = useState<number | null>(null);
  const [lanes, setLanes] = useState<Lane[]>([]);
  const [kept, setKept] = useState<Lane | null>(null);  // a window that is asked for later may not have it
  const all = useMemo(() => lanesOf(data), [data]);  // lanes are those of the window
  const found = lanes.find(({ id }) => id === selected) ?? all.find(({ id }) => id === selected);
  useEffect(() => { if (found) setKept(found); }, [found]);
  const lane = found ?? (kept?.id === selected ? kept : null);
  const ask = useCallback((window: [number, number], width: number) => view.source.requests(view.index, window, width),
                          [view.source, view.index]);
  const own: Own = { name: { title: "request", show: (row) => (
    <button type="button" class="link" onClick={() => setSelected(row["id"])}><Name text={row["name"] ?? row["id"]} /></button>) } };
  const rows = all.filter(({ row }) => row["source"] === report["requests"]["source"] && !row["warm_up"])
    .map(({ row }) => (row["steps"] > 0 ? row : { ...row, device_ns: null }));
  return (
    <>
      <RequestGantt data={data} ask={view.source.live ? ask : null} selected={selected} onSelect={setSelected} onLanes={setLanes} />
      {lane ? <RequestDetails view={view} data={data} lane={lane} onSelect={setSelected} />
        : selected !== null && <p role="status">This request is not among those that are drawn here.</p>}
      <RequestCurves data={data} />
      <Distributions data={data} report={report} />
      <Loads view={view} />
      {tables(report).map((path) => <DescribedTable key={path} report={report} path={path} />)}
      <DescribedTable report={report} path="requests.all[]" rows={rows} own={own} order="-ttft_ns" rows_shown={10} />
    </>
  );
}

// All that the report describes of requests, as it is ordered there.
const tables = (report: Report): string[] => drawable(report).filter((path) => path.startsWith("requests."));

const seriesOf = ({ name, ts, low, high }: Curve): Series =>
  ({ name, x: ts, y: high, stepped: true, ...(low.some((value, at) => value !== high[at]) ? { low } : {}) });

const titles: Record<string, string> = {
  requests: "Requests that run and wait", "KV cache": "Blocks of the KV cache in use, of all", tokens: "Tokens per second",
};

export function RequestCurves({ data }: { data: RequestData }) {
  const groups = [...new Set(data.curves.map(({ group }) => group))], xs: [number, number] = [0, data.span[1] - data.span[0]];
  return (
    <>
      {groups.map((group) => {
        const curves = data.curves.filter((curve) => curve.group === group), unit = curves[0]!.unit === "share" ? "share" : "";
        const title = group === "requests" && curves.length === 1 ? `Requests ${curves[0]!.name}` : titles[group] ?? group;
        return <LineChart key={group} title={title} series={curves.map(seriesOf)} unit={unit} xs={xs} height={110} />;
      })}
    </>
  );
}

// How many requests had their first token, or all, within a time.
function Distributions({ data, report }: { data: RequestData; report: Report }) {
  const metrics = [...new Set(data.distributions.map(({ metric }) => metric))];
  if (metrics.length === 0) return null;
  return (
    <>
      <h3>How long requests took</h3>
      <div class="distributions">
        {metrics.map((metric) => {
          const all = data.distributions.filter((each) => each.metric === metric);
          const row = list(report["requests"]?.["latencies"])
            .find((each) => each["metric"] === metric && each["source"] === all[0]!.source);
          const marks = row && `p50 ${timeText(row["p50_ns"])}, p99 ${timeText(row["p99_ns"])} of ${plural(row["count"], "request")}`;
          const caption = marks ? `${metric}: ${marks}` : metric;
          return <LineChart key={metric} title={`${metric}: share of requests by time`} caption={caption} unit="share" height={130}
                            xs={[0, Math.max(...all.map(({ ns }) => ns[ns.length - 1] ?? 0), 1)]}
                            series={all.map(({ source, ns, share }) => ({ name: source, x: [0, ...ns], y: [0, ...share], stepped: true }))} />;
        })}
      </div>
    </>
  );
}

// Of runs with requests that are shown together, as those of a sweep of loads: throughput against latency.
function Loads({ view: { source } }: { view: View }) {
  const [loads, setLoads] = useState<Row[]>([]);
  useEffect(() => {
    let wanted = true;
    const names = source.runs();
    if (names.length < 2) return;
    Promise.allSettled(names.map((_, index) => source.run(index)))
      .then((runs) => wanted && setLoads(loadsOf(runs.flatMap((run) => (run.status === "fulfilled" ? [run.value] : [])))));
    return () => { wanted = false; };
  }, [source]);
  if (loads.length < 2) return null;
  const series = (["TTFT", "TPOT"] as const).map((metric) => [metric, ["p50", "p99"].map((which): Series => {
    const known = loads.filter((load) => typeof load[`${metric} ${which}`] === "number");
    return { name: which, x: known.map((load) => load["requests_per_s"]), y: known.map((load) => load[`${metric} ${which}`]) };
  })] as const);
  return (
    <>
      <h3>Throughput against latency</h3>
      <div class="distributions">
        {series.map(([metric, lines]) => <LineChart key={metric} title={`${metric} by finished requests per second`} series={lines} unit="ns"
                                                   across="requests/s" height={150} />)}
      </div>
      <Table description={{ name: "loads", title: "Throughput against latency", columns: [
        column("name", "run", "name"), column("word", "seen by", "source"), column("count", "requests", "count"), column("count", "failed", "failed"),
        column("number", "requests/s", "requests_per_s", "finished"), column("number", "output tokens/s", "output_tokens_per_s"),
        ...["TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99", "E2E p50", "E2E p99"].map((key) => column("ns", key, key))] }} rows={loads} />
    </>
  );
}

export function loadsOf(runs: { name: string; report: Report }[]): Row[] {
  const rows = runs.filter(({ report }) => report["requests"]?.["requests_per_s"]).map(({ name, report }): Row => {
    const requests: Row = report["requests"];
    const latencies = list(requests["latencies"]).filter((each) => each["source"] === requests["source"])
      .flatMap((each) => [[`${each["metric"]} p50`, each["p50_ns"]], [`${each["metric"]} p99`, each["p99_ns"]]]);
    return { name, source: requests["source"], count: requests["count"], failed: requests["failed"], requests_per_s: requests["requests_per_s"],
             output_tokens_per_s: requests["output_tokens_per_s"], ...Object.fromEntries(latencies) };
  });
  return rows.sort((a, b) => a["requests_per_s"] - b["requests_per_s"]);
}
