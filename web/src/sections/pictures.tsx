import { list, type View } from "../data";
import { Empty, Section, shown } from "../parts";
import { FlameGraph } from "../pictures/flame/view";
import { RooflineChart } from "../pictures/roofline";
import { Timeline } from "../pictures/timeline/view";
import { plural } from "../text";

export function RooflineSection({ view }: { view: View }) {
  const roofline = view.data.roofline;
  const type = list(view.data.report["devices"])[0]?.["type"] ?? null;
  return (
    <Section id="roofline" title="Roofline"
             lead="How fast stages, operators, modules and kernels compute, by their FLOPs per byte, under what the device can do.">
      {roofline?.points?.length
        ? <RooflineChart roofline={roofline} type={type} />
        : <Empty>No points: {shown(roofline?.why ?? "FLOPs and bytes of this run are not known")}.</Empty>}
    </Section>
  );
}

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

export function FlameSection({ view }: { view: View }) {
  const flame = view.data.flame;
  return (
    <Section id="flame" title="Flame graph"
             lead="Where GPU time, CPU time and bytes go by call path: Python, native code, ranges, kernels.">
      {flame?.why && <p class="notice">{shown(flame.why)}</p>}
      {flame?.parent?.length > 1
        ? <FlameGraph flame={flame} />
        : <Empty>There is nothing to draw: the run has neither kernels nor stacks.</Empty>}
    </Section>
  );
}
