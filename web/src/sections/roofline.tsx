import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { RooflineChart } from "../pictures/roofline_chart";
import { list, type View } from "../view";

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
