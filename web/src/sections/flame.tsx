import { shown } from "../parts/name";
import { Empty, Section } from "../parts/section";
import { FlameGraph } from "../pictures/flame_graph";
import type { View } from "../view";

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
