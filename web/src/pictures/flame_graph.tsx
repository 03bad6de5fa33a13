// Where GPU time, CPU time and bytes go by call path; of two runs, what changed.
import { useMemo } from "preact/hooks";
import { FlameView } from "./flame/flame_view";
import "./flame/flame.css";
import { diffModelOf, modelOf } from "./flame/model";
import { visible } from "../visible";
import "./pictures.css";
import type { FlameGraphProps } from "./props";

let models = 0;

export function FlameGraph({ flame, diff }: FlameGraphProps) {
  const model = useMemo(() => (diff ? diffModelOf(diff) : flame ? modelOf(flame) : null), [flame, diff]);
  const version = useMemo(() => ++models, [model]);  // another tree is another picture: zoomed to nothing, nothing searched
  if (!model || model.usable.length === 0) return <p>There are no call paths{flame?.why ? `: ${visible(flame.why)}` : "."}</p>;
  return <FlameView key={version} model={model} />;
}
