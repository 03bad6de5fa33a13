import { visible } from "../../visible";
import { categoryVariable, stageCategory } from "../colours";
import { type Shape, ShapeKey } from "../shapes";
import type { Point } from "./roofs";

export const shapes: Record<Point["kind"], Shape> = { stage: "square", operator: "circle", module: "triangle", kernel: "diamond" };
export const stageColour = (stage: string): string => (stage === "" ? "var(--p-muted)" : `var(${categoryVariable(stageCategory(stage))})`);

interface LegendProps { kinds: string[]; stages: string[]; off: ReadonlySet<string>; onToggle: (key: string) => void }

export function RooflineLegend({ kinds, stages, off, onToggle }: LegendProps) {
  return (
    <div class="p-legend" role="group" aria-label="what is shown">
      {kinds.map((kind) => (
        <button key={kind} type="button" aria-pressed={!off.has(`kind ${kind}`)} onClick={() => onToggle(`kind ${kind}`)}>
          <ShapeKey shape={shapes[kind as Point["kind"]] ?? "circle"} />{visible(kind)}
        </button>
      ))}
      {stages.map((stage) => (
        <button key={stage} type="button" aria-pressed={!off.has(`stage ${stage}`)} onClick={() => onToggle(`stage ${stage}`)}>
          <span class="p-swatch" style={{ background: stageColour(stage) }} />{stage === "" ? "no stage" : visible(stage)}
        </button>
      ))}
    </div>
  );
}
