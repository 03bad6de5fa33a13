// The answer: what was lost, what holds the model back, what to do.
import { type Finding, type Gain, list, type Row, type View } from "../data";
import { Copyable, Empty, Section, ShareBar, shown } from "../parts";
import { column, type Description, Rows, Table } from "../table";
import { plural, shareText, timeText } from "../text";

export function Summary({ view }: { view: View }) {
  const diagnosis = view.data.report.diagnosis;
  const findings = diagnosis?.findings ?? [];
  return (
    <Section id="summary" title="Summary">
      <LossNotice view={view} />
      {view.data.thinned && <p class="notice">{shown(view.data.thinned)}</p>}
      {diagnosis?.headline && <p class="headline">{shown(diagnosis.headline)}</p>}
      {findings.length > 1 && <p class="lead">Ranked by what they would save of the whole run. Gains overlap: they do not add up.</p>}
      {findings.length > 0
        ? (
          <ol class="findings">
            {findings.map((finding, at) => <li key={at}><FindingCard view={view} finding={finding} open={at < 2} /></li>)}
          </ol>
        )
        : (
          <Empty>
            {diagnosis ? "No rule found anything that holds this run back; " : "This page was made without a diagnosis; "}
            <a href="#numbers">what was looked for</a>.
          </Empty>
        )}
    </Section>
  );
}

// Before any number: what is missing from it.
function LossNotice({ view }: { view: View }) {
  const losses = list(view.data.report["losses"]);
  const lost = losses.filter((loss) => loss["severity"] === "data_loss");
  const degraded = losses.filter((loss) => loss["severity"] === "degraded");
  if (lost.length + degraded.length === 0) return null;
  const parts = [lost.length ? `${plural(lost.length, "kind")} of data lost` : "",
                 degraded.length ? `${plural(degraded.length, "kind")} of data degraded` : ""].filter(Boolean);
  const worst = [...lost, ...degraded].slice(0, 3).map((loss) => `${shown(loss["count"])} ${shown(loss["unit"])} (${shown(loss["name"])})`);
  return (
    <p class="notice">
      <strong><span aria-hidden="true">⚠ </span>{parts.join(", ")}:</strong> {worst.join("; ")}
      {losses.length > 3 ? " …" : ""} <a href="#losses">Losses</a>
    </p>
  );
}

// One finding: how bad, what, what it costs, on which numbers that rests, what to do about it.
const icons: Record<string, string> = { high: "▲", medium: "◆", low: "●", note: "i", inconclusive: "?" };

export function FindingCard({ view, finding, open }: { view: View; finding: Finding; open: boolean }) {
  const kind = finding.verdict === "inconclusive" ? "inconclusive" : finding.severity;
  const where = [finding.stage, finding.part].filter(Boolean).map(shown).join(" · ") || "whole run";
  return (
    <article class={`finding ${kind}`} aria-label={shown(finding.title)}>
      <h3>
        <span class="severity"><span aria-hidden="true">{icons[kind] ?? "i"} </span>{shown(kind)}</span>
        {" "}{shown(finding.title)}
      </h3>
      <p class="where">{where} · rule <code>{shown(finding.rule)}</code></p>
      <p>{shown(finding.text)}</p>
      {finding.gain && <GainLine gain={finding.gain} stage={finding.stage} />}
      {finding.advice.length > 0 && (
        <>
          <h4>What to do</h4>
          <ul class="advice">{finding.advice.map((each) => <li key={each}>{shown(each)}</li>)}</ul>
        </>
      )}
      {finding.next && (
        <p class="next">{finding.verdict === "inconclusive" ? "To settle it: " : "Next: "}<Copyable text={finding.next} what="the command" /></p>
      )}
      {finding.evidence.length > 0 && (
        <details open={open}>
          <summary>Evidence</summary>
          <Table description={evidenceOf(view)} rows={finding.evidence as unknown as Row[]} />
        </details>
      )}
    </article>
  );
}

function GainLine({ gain, stage }: { gain: Gain; stage: string | null }) {
  const of = stage ? shown(stage) : "the run";
  const share = gain.of_ns > 0 ? gain.ns / gain.of_ns : 0;
  return (
    <p class="gain">
      <ShareBar share={share} />
      <span>
        <strong>{gain.upper_bound ? "saves at most" : "saves"} {timeText(gain.ns)}</strong>, {shareText(share)} of{" "}
        {gain.of ? shown(gain.of) : `the time of ${of}`}
        {stage && gain.run_share != null ? `, ${shareText(gain.run_share)} of the run` : ""}
        <small>{shown(gain.how)}</small>
      </span>
    </p>
  );
}

const evidenceOf = (view: View): Description => ({ name: "evidence", title: "Evidence", rows_shown: 100, columns: [
  column("text", "What", "what", "", { show: (row) => <>{shown(row["what"])} <code class="dim">{shown(row["name"])}</code></> }),
  column("measure", "Value", "value", "", { why: "why" }), column("sentence", "Of", "of"), column("word", "Source", "source"),
  column("text", "Rows", "rows", "", { show: (row) => (row["rows"] ? <Rows view={view} sql={row["rows"]} /> : "") }),
] });
