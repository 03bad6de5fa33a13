import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { RooflineChart } from "../pictures/roofline_chart";
import type { View } from "../view";

export function RooflineSection({ view }: { view: View }) {
  const roofline = view.data.roofline;
  return (
    <Section id="roofline" title="Roofline"
             lead="How fast stages, operators, modules and kernels compute, by the FLOPs they make of each byte; the roofs are what the device can do.">
      {roofline?.points?.length ? <RooflineChart roofline={roofline} /> : <Empty>No points: {shown(roofline?.why ?? "FLOPs and bytes of this run are not known")}.</Empty>}
    </Section>
  );
}
