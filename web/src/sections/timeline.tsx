import { plural } from "../format";
import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { Timeline } from "../pictures/timeline";
import type { View } from "../view";

export function TimelineSection({ view }: { view: View }) {
  const timeline = view.data.timeline;
  const any = timeline?.lanes?.length || timeline?.curves?.length;
  return (
    <Section id="timeline" title="Timeline" lead={any ? lead(view) : undefined}>
      {any ? <Timeline source={view.source} index={view.index} /> : <Empty>This run has no events with a time.</Empty>}
      <Beside view={view} />
    </Section>
  );
}

// Of two runs both are seen at once.
function Beside({ view }: { view: View }) {
  const names = view.source.runs(), other = 1 - view.index;
  if (names.length !== 2) return null;
  return <><h3>{shown(names[other])}</h3><Timeline source={view.source} index={other} /></>;
}

function lead(view: View): string {
  const slices = plural(view.data.timeline.slices_in_window ?? 0, "event");
  if (view.source.live) return `${slices}; what is shorter than a pixel is drawn as one, and read again as you zoom.`;
  const steps = view.data.details?.length ? " The median step of each stage is there in full detail." : "";
  return `${slices}; what is shorter than a pixel of the whole run is drawn as one.${steps} All of it: llmprof view.`;
}
