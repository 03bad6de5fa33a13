// From the measured time down to the floor: what is taken off, one after the other. The rows add up to 100 %.
import { countText, shareText, timeText } from "../format";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { Value } from "../parts/unknown";
import { list, type Row, type View } from "../view";

export function Waterfall({ view }: { view: View }) {
  const all = list(view.data.report["waterfalls"]);
  return (
    <Section id="waterfall" title="Waterfall to the floor"
             lead="What the measured time consists of, down to the least time that the device's peaks allow. Each table adds up to 100 %.">
      {all.length === 0 && <Empty>No stage of this run has steps to take apart.</Empty>}
      {all.map((each) => <OneWaterfall key={each["stage"]} waterfall={each} />)}
    </Section>
  );
}

export interface Bar {
  label: string; kind: string; why: string | null;
  meanNs: number | null; share: number | null;
  from: number; to: number;  // of the picture's width, 0 … 1
}

// Bars hang from 1 (all of it) down to the floor at 0.
export function bars(waterfall: Row): Bar[] {
  const measured = Number(waterfall["measured_ns"]), samples = Math.max(1, Number(waterfall["samples"]));
  const out: Bar[] = [];
  let at = 1;
  for (const term of list(waterfall["terms"])) {
    const share = measured > 0 && typeof term["ns"] === "number" ? term["ns"] / measured : null;
    if (share === 0) continue;
    const next = at - (share ?? 0);
    const mean = typeof term["mean_ns"] === "number" ? term["mean_ns"] : null;
    out.push({ label: String(term["label"] ?? term["name"]), meanNs: mean, share, from: Math.min(at, next), to: Math.max(at, next),
               kind: (share ?? 0) < 0 ? "less" : String(term["name"]), why: term["why"] ?? null });
    at = next;
  }
  const floor = waterfall["floor_ns"];
  const known = typeof floor === "number" && measured > 0;
  out.push({ label: "floor: at the device's peaks", meanNs: known ? floor / samples : null, share: known ? floor / measured : null,
             from: 0, to: known ? Math.max(0, at) : 0, kind: "floor", why: waterfall["why"] ?? null });
  return out;
}

function OneWaterfall({ waterfall }: { waterfall: Row }) {
  const rows = bars(waterfall);
  const sum = rows.reduce((total, row) => total + (row.share ?? 0), 0);
  const title = `${shown(waterfall["stage"])}: ${shown(waterfall["quantity"])}`;
  return (
    <>
      <h3>{title} <small>mean {timeText(waterfall["mean_ns"])} of {countText(waterfall["samples"])}</small></h3>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table class="waterfall">
          <thead>
            <tr>
              <th scope="col">Part</th><th scope="col" class="number">Mean time</th><th scope="col" class="number">Share</th>
              <th scope="col"><span class="spoken">Bar</span></th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.label} class={row.kind === "floor" ? "floor" : ""}>
                <th scope="row">{shown(row.label)}</th>
                <td class="number"><Value text={timeText(row.meanNs)} why={row.why} /></td>
                <td class="number">{shareText(row.share)}</td>
                <td class="fall"><Fall bar={row} /></td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">measured</th><td class="number">{timeText(waterfall["mean_ns"])}</td><td class="number">{shareText(sum)}</td><td />
            </tr>
          </tfoot>
        </table>
      </div>
    </>
  );
}

function Fall({ bar }: { bar: Bar }) {
  const from = Math.max(0, Math.min(1, bar.from)), to = Math.max(0, Math.min(1, bar.to));
  const style = { left: `${from * 100}%`, width: `${Math.max(0.2, (to - from) * 100)}%` };
  return <span class={`fallbar ${bar.kind}`} aria-hidden="true"><span style={style} /></span>;
}
