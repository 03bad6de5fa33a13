import { fillArea, shorten } from "../canvas";
import { cssColour, divergingColour, textOn } from "../colours";
import { shortName } from "../short_name";
import type { Theme } from "../theme";
import { relativeChange } from "./change";
import { fillOf, lookOf, textOf } from "./look";
import type { Box, Tree } from "./tree";

export const rowHeight = 19;
const fontSize = 11;

export interface Change { before: Float64Array; after: Float64Array; full: number }
export interface FlameStyle {
  theme: Theme; zoomed: number; focused: number;
  found: Set<number> | null;  // null: no search
  change: Change | null;      // null: colours are those of the kinds
}

export function drawFlame(context: CanvasRenderingContext2D, tree: Tree, boxes: Box[], style: FlameStyle): void {
  context.font = `${fontSize}px ${style.theme.font}`;
  context.textBaseline = "middle";
  for (const box of boxes) drawBox(context, tree, box, style);
}

function drawBox(context: CanvasRenderingContext2D, tree: Tree, { node, x, width, depth }: Box, style: FlameStyle): void {
  const look = lookOf(tree.kinds[node]!, tree.names[node]!);
  const [y, height] = [depth * rowHeight, rowHeight - 1];
  const wide = width > 3 ? width - 0.75 : width;
  const colour = style.change ? changeColour(node, style.change, style.theme) : null;
  const text = colour ? colour.text : textOf(look, style.theme);
  const dimmed = (style.found && !style.found.has(node)) || depth < tree.depth[style.zoomed]!;
  context.globalAlpha = dimmed ? 0.35 : 1;
  const fill = colour ? colour.fill : fillOf(look, style.theme);
  fillArea(context, { x, y, width: wide, height }, fill, look.pattern, text);
  const name = width > 26 ? shorten(labelOf(tree, node), width - 8, fontSize) : "";
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

function labelOf(tree: Tree, node: number): string {
  const kind = tree.kinds[node]!, name = tree.names[node]!;
  return kind === "kernel" || kind === "native" ? shortName(name) : name;
}

function changeColour(node: number, { before, after, full }: Change, theme: Theme): { fill: string; text: string } {
  const colour = divergingColour(theme.diverging, relativeChange(before[node]!, after[node]!), full);
  return { fill: cssColour(colour), text: textOn(colour) };
}
