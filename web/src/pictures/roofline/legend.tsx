import { visible } from "../../visible";
import { categoryVariable, stageCategory } from "../colours";
import { type Shape, ShapeKey, shapePath } from "../shapes";
import { type Level, levelNames, type Point } from "./roofs";

export const shapes: Record<Point["kind"], Shape> = { stage: "square", operator: "circle", module: "triangle", kernel: "diamond" };
export const stageColour = (stage: string): string => (stage === "" ? "var(--p-muted)" : `var(${categoryVariable(stageCategory(stage))})`);

// Counted points are outlines: unbroken of memory, dashed of the L2 cache, dotted of L1.
export const levelDashes: Record<Level, string> = { dram: "none", l2: "4 2", l1: "1.5 1.5" };

interface LegendProps { kinds: string[]; levels: Level[]; stages: string[]; off: ReadonlySet<string>; onToggle: (key: string) => void }

function LevelKey({ level }: { level: Level }) {
  return (
    <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden="true">
      <path d={shapePath("square", 5)} fill="none" stroke="currentColor" stroke-width={1.8} stroke-dasharray={levelDashes[level]} />
    </svg>
  );
}

export function RooflineLegend({ kinds, levels, stages, off, onToggle }: LegendProps) {
  return (
    <div class="p-legend" role="group" aria-label="what is shown">
      {kinds.map((kind) => (
        <button key={kind} type="button" aria-pressed={!off.has(`kind ${kind}`)} onClick={() => onToggle(`kind ${kind}`)}>
          <ShapeKey shape={shapes[kind as Point["kind"]] ?? "circle"} />{visible(kind)}
        </button>
      ))}
      {levels.map((level) => (
        <button key={level} type="button" aria-pressed={!off.has(`level ${level}`)} onClick={() => onToggle(`level ${level}`)}>
          <LevelKey level={level} />counted, {levelNames[level]}
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
