// One finding: how bad, what, what it costs, on which numbers that rests, what to do about it.
import type { Evidence, Finding, Gain } from "../data";
import { measureText, shareText, timeText } from "../format";
import { ShareBar } from "../parts/bar";
import { Copyable } from "../parts/copy";
import { shown } from "../parts/name";
import { Rows } from "../parts/rows";
import { Value } from "../parts/unknown";
import type { View } from "../view";

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
          <EvidenceTable view={view} evidence={finding.evidence} />
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
        <strong>{gain.upper_bound ? "saves at most" : "saves"} {timeText(gain.ns)}</strong>, {shareText(share)} of the time of {of}
        <small>{shown(gain.how)}</small>
      </span>
    </p>
  );
}

function EvidenceTable({ view, evidence }: { view: View; evidence: Evidence[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Evidence">
      <table>
        <thead>
          <tr>
            <th scope="col">What</th><th scope="col" class="number">Value</th><th scope="col">Of</th><th scope="col">Source</th>
            <th scope="col">Rows</th>
          </tr>
        </thead>
        <tbody>
          {evidence.map((each) => (
            <tr key={each.name}>
              <th scope="row">{shown(each.what)} <code class="dim">{shown(each.name)}</code></th>
              <td class="number"><Value text={measureText(each.value, each.unit)} why={each.why} /></td>
              <td>{shown(each.of ?? "")}</td>
              <td>{shown(each.source)}</td>
              <td>{each.rows ? <Rows view={view} sql={each.rows} /> : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
