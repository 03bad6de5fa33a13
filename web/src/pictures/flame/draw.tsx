// The boxes of a flame graph on a canvas, and what their colours mean.
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { percent } from "../../text";
import { fillArea, fitted, prepare, type Theme } from "../canvas";
import { cssColour, divergingColour, parseColour, textOn } from "../drawing";
import { kernelClasses } from "../timeline/gaps";
import { type Box, boxAt, fillOf, kindNames, layout, lookOf, relativeChange, type Tree } from "./model";

export interface FlameCanvasProps extends Omit<FlameStyle, "upwards"> {
  tree: Tree; total: Float64Array; width: number; upwards?: boolean;
  onPick: (node: number) => void; onHover: (node: number, event: PointerEvent | null) => void;
}

const leastWidth = 0.6;

// upwards: the root is at the bottom, what is around it above.
export function FlameCanvas({ tree, total, width, zoomed, focused, theme, found, change, upwards = false, onPick, onHover }: FlameCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const boxes = useMemo(() => layout(tree, total, zoomed, width, leastWidth), [tree, total, zoomed, width]);
  const rows = 1 + boxes.reduce((most, box) => Math.max(most, box.depth), 0), height = rowHeight * rows;
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, width, height, theme.printing);
    const placed = upwards ? boxes.map((box) => ({ ...box, depth: rows - 1 - box.depth })) : boxes;
    if (context) drawFlame(context, tree, placed, { theme, zoomed, focused, found, change, upwards });
  }, [tree, boxes, theme, zoomed, focused, found, change, height, upwards]);
  const nodeAt = (event: MouseEvent): number => {
    const box = canvas.current!.getBoundingClientRect(), row = Math.floor((event.clientY - box.top) / rowHeight);
    return boxAt(boxes, event.clientX - box.left, upwards ? rows - 1 - row : row)?.node ?? -1;
  };
  return (
    <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true"
            onPointerMove={(event) => onHover(nodeAt(event), event)} onPointerLeave={() => onHover(-1, null)}
            onClick={(event) => { const node = nodeAt(event); if (node >= 0) onPick(node); }} />
  );
}

// neutral: colours say something else, kinds differ by pattern only.
export function KindLegend({ tree, total, theme, neutral }: { tree: Tree; total: Float64Array; theme: Theme; neutral: boolean }) {
  const weighs = (_: unknown, node: number): boolean => total[node]! > 0;
  const classes = [...new Set(tree.classes.filter(weighs))].filter((each) => each >= 0).sort((a, b) => a - b);
  const kernels = neutral ? classes.slice(0, 1) : classes;  // without colours they look alike
  return (
    <ul class="p-legend" aria-label="kinds of frames">
      {kindNames(tree.kinds.filter(weighs)).map((kind) => (
        <li key={kind} class="p-key"><Swatch kind={kind} kernelClass={-1} theme={theme} neutral={neutral} />{lookOf(kind).name}</li>
      ))}
      {kernels.map((each) => (
        <li key={each} class="p-key">
          <Swatch kind="kernel" kernelClass={each} theme={theme} neutral={neutral} />{neutral ? "kernel" : `kernel: ${kernelClasses[each]}`}
        </li>
      ))}
    </ul>
  );
}

function Swatch({ kind, kernelClass, theme, neutral }: { kind: string; kernelClass: number; theme: Theme; neutral: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current && prepare(canvas.current, 16, 12, theme.printing);
    const fill = neutral ? cssColour(theme.diverging.none) : fillOf(kind, "", kernelClass, theme);
    if (context) fillArea(context, { x: 0, y: 0, width: 16, height: 12 }, fill, lookOf(kind).pattern, textOn(parseColour(fill)));
  }, [kind, kernelClass, theme, neutral]);
  return <canvas ref={canvas} style={{ width: "16px", height: "12px" }} aria-hidden="true" />;
}

export function ChangeLegend({ full }: { full: number }) {
  return (
    <span class="p-scale" role="img" aria-label={`colour: blue is ${percent(full)} or more less, orange ${percent(full)} or more more`}>
      −{percent(full)} <i /> +{percent(full)}, new
    </span>
  );
}

export const rowHeight = 19;
const fontSize = 11;

export interface Change { before: Float64Array; after: Float64Array; full: number }
export interface FlameStyle {
  theme: Theme; zoomed: number; focused: number;
  found: Set<number> | null;  // null: no search
  change: Change | null;      // null: colours are those of the kinds
  upwards: boolean;
}

export function drawFlame(context: CanvasRenderingContext2D, tree: Tree, boxes: Box[], style: FlameStyle): void {
  context.font = `${fontSize}px ${style.theme.font}`;
  context.textBaseline = "middle";
  for (const box of boxes) drawBox(context, tree, box, style);
}

function drawBox(context: CanvasRenderingContext2D, tree: Tree, { node, x, width, depth }: Box, style: FlameStyle): void {
  const look = lookOf(tree.kinds[node]!);
  const [y, height] = [depth * rowHeight, rowHeight - 1];
  const wide = width > 3 ? width - 0.75 : width;
  const colour = style.change ? changeColour(node, style.change, style.theme) : null;
  const fill = colour ? colour.fill : fillOf(tree.kinds[node]!, tree.names[node]!, tree.classes[node]!, style.theme);
  const text = colour ? colour.text : textOn(parseColour(fill));
  const dimmed = (style.found && !style.found.has(node)) || tree.depth[node]! < tree.depth[style.zoomed]!;
  context.globalAlpha = dimmed ? 0.35 : 1;
  fillArea(context, { x, y, width: wide, height }, fill, look.pattern, text);
  const name = width > 26 ? fitted(context, labelOf(tree, node), width - 8, fontSize) : "";
  if (name !== "") {
    context.fillStyle = fill;  // the pattern stays out of the text
    if (look.pattern !== "plain") context.fillRect(x + 2, y + 2, Math.min(wide - 4, context.measureText(name).width + 4), height - 5);
    context.globalAlpha = 1;
    context.fillStyle = dimmed ? style.theme.text : text;
    context.fillText(name, x + 4, y + height / 2 + 0.5);
  }
  context.globalAlpha = 1;
  if (node === style.focused) {
    context.strokeStyle = style.theme.text;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, Math.max(1, wide - 2), height - 2);
  }
}

export function labelOf(tree: Tree, node: number): string {
  return tree.shortNames[node] || tree.names[node]!;
}

function changeColour(node: number, { before, after, full }: Change, theme: Theme): { fill: string; text: string } {
  const colour = divergingColour(theme.diverging, relativeChange(before[node]!, after[node]!), full);
  return { fill: cssColour(colour), text: textOn(colour) };
}

