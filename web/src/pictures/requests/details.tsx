// One request: its figures, who stalled it, what its part of steps went to, and its steps with who else was in them.
import { useEffect, useState } from "preact/hooks";
import { type Members, type MembersOf, type RequestData, type Report, type Row, type View } from "../../data";
import { described } from "../../described";
import { Empty, Name, shown, Value } from "../../parts";
import { cellText, column, type Column, Table } from "../../table";
import { plural, time, timeText, visible } from "../../text";
import { showInTimeline } from "../timeline/input";
import { type Lane, lookOf, timeIn } from "./model";

interface Props { view: View; data: RequestData; lane: Lane; onSelect: (id: number | null) => void }

export function RequestDetails({ view, data, lane, onSelect }: Props) {
  const { row } = lane, report = view.data.report;
  const works = data.works.map((each) => ({ ...each, ns: Number(row[each.key] ?? 0) })).filter(({ ns }) => ns > 0);
  const blamed = ((row["stalled_most_by"] ?? []) as [number, string | null, number][])
    .map(([id, name, ns]) => ({ id, name: name ?? `request ${id}`, ns, share: ns / row["stalled_ns"] }));
  return (
    <section class="request-details" aria-label={`Request ${visible(lane.name)}`}>
      <h3>Request <Name text={lane.name} />{" "}
        <small>{shown(row["error"] ?? row["status"] ?? "its end was not seen")}{row["warm_up"] && ", warm-up"}</small>{" "}
        <button type="button" onClick={() => onSelect(null)}>close</button></h3>
      <Figures report={report} row={row} />
      {row["client"] && <p>Its client saw {clientText(row)}.</p>}
      <div class="columns">
        <div>
          <h4>Where its time went</h4>
          <Table description={{ name: "states", title: "Where its time went", columns: stateColumns }}
                 rows={timeIn(lane, data.states).map((each) => ({ ...each, text: lookOf(each.state).text, meaning: lookOf(each.state).meaning }))} />
        </div>
        {works.length > 0 && (
          <div>
            <h4>Its part of steps, by kind of work</h4>
            <Table description={{ name: "work", title: "Its part of steps", columns: workColumns }}
                   rows={works.map((each) => ({ ...each, share: each.ns / row["time_ns"] }))} />
          </div>
        )}
        {blamed.length > 0 && (
          <div>
            <h4>Whose prompts stalled it</h4>
            <Table description={{ name: "stalled by", title: "Whose prompts stalled it", columns: [
              column("name", "request", "name", "", { show: (each) => <Other id={each["id"]} name={each["name"]} onSelect={onSelect} /> }),
              column("ns", "stalled it", "ns",
                     "how much longer than steps without prompts the steps took"),
              column("share", "of its stalls", "share")] }} rows={blamed} />
          </div>
        )}
      </div>
      {row["steps"] > 0 ? <Steps key={lane.id} view={view} data={data} lane={lane} onSelect={onSelect} />
        : <Empty>No step says that it worked for this request: {row["source"] === "predicted" ? "it was predicted as a whole"
          : "only its moments are known"}.</Empty>}
    </section>
  );
}

const stateColumns = [column("text", "state", "text"), column("ns", "time", "ns", "of the clock"),
                      column("count", "steps", "steps", "", { nonzero: true }), column("text", "meaning", "meaning")];
const workColumns = [column("text", "work", "work"), column("ns", "its part", "ns", "of the time of its steps"),
                     column("share", "of its part", "share", "", { bar: true }), column("text", "divided", "rule")];

// The words of the report's table of requests.
const figures = ["ttft_ns", "queue_ns", "prefill_ns", "tpot_ns", "e2e_ns", "stalled_ns", "prompt_tokens", "cached_tokens", "output_tokens",
                 "preemptions", "device_ns", "energy_j"];

function Figures({ report, row }: { report: Report; row: Row }) {
  const columns = described(report, ["requests.all[]"])?.columns ?? [];
  const chosen = figures.flatMap((key) => columns.filter((each) => each.key === key && (key !== "device_ns" || row["steps"] > 0)));
  return (
    <dl class="request-figures">
      <div title="on the clock of the picture"><dt>arrives at</dt>
        <dd>{time(row["arrival_ns"])}{row["arrival_seen"] === false && " or before"}</dd></div>
      {chosen.map((each) => (
        <div key={each.key} title={each.meaning}><dt>{each.title}</dt><dd><Value text={withUnit(each, row)} /></dd></div>
      ))}
    </dl>
  );
}

const withUnit = (each: Column, row: Row): string => cellText(row, each) + (each.key === "energy_j" && row["energy_j"] ? " J" : "");

function clientText({ client, arrival_ns: arrival, ttft_ns: ttft, e2e_ns: e2e }: Row): string {
  const late = client["sent_ns"] - client["arrival_ns"], way = arrival - client["sent_ns"];
  return [
    `TTFT ${timeText(client["ttft_ns"])} (${timeText(client["ttft_ns"] - ttft)} more than the server)`,
    `TPOT ${timeText(client["tpot_ns"])}`,
    `E2E ${timeText(client["e2e_ns"])} (${timeText(client["e2e_ns"] - e2e)} more)`,
    late > 0 ? `sent it ${timeText(late)} after its schedule` : "", way > 0 ? `${timeText(way)} on the way to the server` : "",
  ].filter((text) => text && !text.includes("–")).join(", ");
}

function Other({ id, name, onSelect }: { id: number; name: unknown; onSelect: (id: number | null) => void }) {
  return <button type="button" class="link" onClick={() => onSelect(id)}><Name text={name} /></button>;
}

type Answer = Members | "asking" | "absent" | Error;

function useMembers({ source, index }: View, of: MembersOf | null): Answer {
  const [answer, setAnswer] = useState<Answer>("asking"), key = JSON.stringify(of);
  useEffect(() => {
    let wanted = true;
    setAnswer("asking");
    const say = (found: Answer) => { if (wanted) setAnswer(found); };
    if (of) source.members(index, of).then((found) => say(found ?? "absent"), (error: unknown) => say(error as Error));
    return () => { wanted = false; };
  }, [source, index, key]);
  return answer;
}

const forIts = (row: Row): string => (row["prefill"] ? "prefill" : "decode");

function Steps({ view, data, lane, onSelect }: Props) {
  const answer = useMembers(view, { request: lane.id });
  const [step, setStep] = useState<Row | null>(null);
  if (answer === "asking") return <p role="status">Asking for its steps …</p>;
  if (answer === "absent") {
    const known = plural(data.members.requests.length, "request");
    return <Empty>This file has the steps of {known} one by one, and this one is not among them: llmprof view has all.</Empty>;
  }
  if (answer instanceof Error) return <Empty>Its steps cannot be shown: {shown(answer.message)}.</Empty>;
  const rows = answer.rows.map((row): Row => {
    const duration = row["end_ns"] - row["begin_ns"];
    return { ...row, duration_ns: duration, share: row["time_ns"] / duration, others: row["members"] - 1, kind: forIts(row) };
  });
  return (
    <>
      <h4>Its steps</h4>
      {answer.truncated && <p class="notice">The first {rows.length} of {lane.row["steps"]} steps.</p>}
      <Table description={{ name: "steps", title: "Its steps", rows_shown: 8, columns: [
        column("text", "step", "step_id", "number of the step in the run", { show: (row) => (
          <button type="button" aria-pressed={row["step_id"] === step?.["step_id"]} onClick={() => setStep(row)}>
            {String(row["step_id"])}</button>) }),
        column("ns", "at", "begin_ns", "on the clock of the picture"), column("ns", "takes", "duration_ns", "of the clock"),
        column("stage", "stage", "stage"),
        column("word", "for its", "kind", "prefill: its prompt, or what it had lost; decode: an output token"),
        column("count", "tokens", "tokens", "new ones of this request"),
        column("count", "context", "context", "its length after the step"),
        column("ns", "its part", "time_ns", "of the step's time"),
        column("share", "of the step", "share", "its part of the step's time"),
        column("count", "others", "others", "requests that were in the step as well"),
        column("ns", "stalled", "stalled_ns", "how much longer than steps without prompts", { nonzero: true }),
        column("name", "by", "stalled_by", "the request whose prompt had most tokens in the step", { show: (row) =>
          (row["stalled_by_id"] && <Other id={row["stalled_by_id"]} name={row["stalled_by"] ?? row["stalled_by_id"]} onSelect={onSelect} />) }),
      ] }} rows={rows} />
      {step && <Step key={step["step_id"]} view={view} data={data} step={step} onSelect={onSelect} />}
    </>
  );
}

interface StepProps extends Omit<Props, "lane"> { step: Row }

function Step({ view, data, step, onSelect }: StepProps) {
  const answer = useMembers(view, { step: step["step_id"] });
  if (answer === "asking") return <p role="status">Asking who was in the step …</p>;
  if (answer === "absent" || answer instanceof Error) return <Empty>Who was in the step is not known here.</Empty>;
  const whole = step["end_ns"] - step["begin_ns"], origin = data.span[0];
  const works = data.works.filter(({ key }) => answer.rows.some((row) => row[key] > 0));
  const rows = answer.rows.map((row): Row =>
    ({ ...row, share: row["time_ns"] / whole, kind: row["request_id"] === null ? "padding, other work" : forIts(row) }));
  const show = () => showInTimeline(view.data, [origin + step["begin_ns"], origin + step["end_ns"]]);
  return (
    <section class="step-details" aria-label={`Step ${step["step_id"]}`}>
      <h4>Who was in step {step["step_id"]}: {shown(step["stage"])}, {timeText(whole)} at {time(step["begin_ns"])}
        {" "}<button type="button" onClick={show}>its kernels in the timeline</button></h4>
      {answer.truncated && <p class="notice">The first {rows.length} of its requests.</p>}
      <Table description={{ name: "members", title: `Who was in step ${step["step_id"]}`, rows_shown: 12, order: "-time_ns", columns: [
        column("name", "request", "request", "", { show: (row) =>
          (row["request_id"] === null ? "the engine itself"
            : <Other id={row["request_id"]} name={row["request"] ?? row["request_id"]} onSelect={onSelect} />) }),
        column("word", "for its", "kind"), column("count", "tokens", "tokens", "new ones; of the engine, rows of padding"),
        column("count", "context", "context", "length after the step", { nonzero: true }),
        column("ns", "its part", "time_ns", "the parts of a step add up to its time"),
        column("share", "of the step", "share", "", { bar: true }),
        ...works.map(({ key, work, rule }) => column("ns", shortWork[key] ?? work, key, `${work}: divided ${rule}`, { nonzero: true })),
        column("ns", "stalled", "stalled_ns", "how much longer than steps without prompts", { nonzero: true })] }} rows={rows} />
    </section>
  );
}

// Titles of narrow columns; the words of the report stand behind them.
const shortWork: Record<string, string> = {
  products_ns: "on tokens", weights_ns: "weights", attention_ns: "attention", head_ns: "logits", copies_ns: "copies", idle_ns: "idle",
  other_ns: "other threads",
};
