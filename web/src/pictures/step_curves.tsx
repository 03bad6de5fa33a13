// Durations of the steps of each stage over the run.
import { visible } from "../visible";
import { LineChart } from "./charts/line_chart";
import { marksOf, type Series } from "./charts/series";
import "./pictures.css";
import type { StepCurvesProps } from "./props";
import { count, time } from "./units";

export function StepCurves({ curves }: StepCurvesProps) {
  const known = curves.filter((curve) => curve.duration_ns.length > 0);
  const origin = known.reduce((first, curve) => Math.min(first, curve.begin_ns[0] ?? first), Infinity);
  return (
    <>
      {known.map((curve) => {
        const stage = visible(curve.stage);
        const series: Series = { name: stage, x: curve.begin_ns.map((ns) => ns - origin), y: curve.duration_ns };
        const thinned = curve.steps > curve.duration_ns.length ? ", thinned to the slowest" : "";
        const title = `${stage}: duration of ${count(curve.steps)} ${curve.steps === 1 ? "step" : "steps"}${thinned}`;
        return (
          <LineChart key={curve.stage} title={title} caption={`${title}: ${marks(curve.duration_ns)}`} series={[series]} unit="ns" median
                     more={(_, index) => workOf(curve.batch[index], curve.context[index])} />
        );
      })}
    </>
  );
}

const marks = (durations: number[]): string => {
  const found = marksOf(durations)!;
  return `least ${time(found.least)}, median ${time(found.median)}, most ${time(found.most)}`;
};

// 0 is unknown.
function workOf(batch: number | undefined, context: number | undefined): string {
  return `${batch ? `, batch ${count(batch)}` : ""}${context ? `, context ${count(context)}` : ""}`;
}
