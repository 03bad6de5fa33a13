import type { StepCurvesProps } from "./props";

export function StepCurves(_: StepCurvesProps) {
  return <p class="empty">StepCurves: not drawn yet.</p>;
}
