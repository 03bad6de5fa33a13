// The answer: what was lost, what holds the model back, what to do.
import { plural } from "../format";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { list, type View } from "../view";
import { FindingCard } from "./finding";

export function Summary({ view }: { view: View }) {
  const diagnosis = view.data.report.diagnosis;
  const findings = diagnosis?.findings ?? [];
  return (
    <Section id="summary" title="Summary">
      <LossNotice view={view} />
      {view.data.thinned && <p class="notice">{shown(view.data.thinned)}</p>}
      {diagnosis?.headline && <p class="headline">{shown(diagnosis.headline)}</p>}
      {findings.length > 1 && <p class="lead">Ranked by the time they would save. Gains overlap: they do not add up.</p>}
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
