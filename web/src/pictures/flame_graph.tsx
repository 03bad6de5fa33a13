// Where GPU time, CPU time and bytes go by call path; of two runs, what changed.
import { useMemo } from "preact/hooks";
import { FlameView } from "./flame/flame_view";
import "./flame/flame.css";
import { diffModelOf, modelOf } from "./flame/model";
import "./pictures.css";
import type { FlameGraphProps } from "./props";

export function FlameGraph({ flame, diff }: FlameGraphProps) {
  const model = useMemo(() => (diff ? diffModelOf(diff) : flame ? modelOf(flame) : null), [flame, diff]);
  if (!model || model.usable.length === 0) return <p>There are no call paths{flame?.why ? `: ${flame.why}` : "."}</p>;
  return <FlameView key={diff ? "diff" : "flame"} model={model} />;
}
