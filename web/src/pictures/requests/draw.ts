// Lanes of requests on a canvas: one by one where there is room, else several of them as one row of mixed colours.
import { fitted, patternOf, type Theme } from "../canvas";
import { parseColour, type Range, textOn } from "../drawing";
import { hasFailed, type Lane, lookOf, mixture, type Part } from "./model";

export interface GanttStyle {
  window: Range; left: number; width: number; height: number;  // left: of the names; pixels
  lane: number; top: number; named: boolean;                   // height of a lane; scrolled by; with names
  theme: Theme; colours: Record<string, string>; selected: number | null;
}

export const leastLane = 2;  // pixels: below, lanes are mixed
const roomyLane = 11, roomyToken = 24;

export function drawRows(context: CanvasRenderingContext2D, rows: Lane[][], states: string[], style: GanttStyle): void {
  const { width, height, lane: high, top, left } = style;
  if (high < leastLane) drawMixed(context, rows, states, style);
  else {
    const first = Math.max(0, Math.floor(top / high)), last = Math.min(rows.length, Math.ceil((top + height) / high));
    for (let at = first; at < last; ++at) {
      const row = rows[at]!, y = at * high - top;
      if (style.named) writeName(context, row[0]!, y, style);
      for (const lane of row) drawLane(context, lane, y, style);
    }
  }
  const at = rows.findIndex((row) => row.some(({ id }) => id === style.selected));
  if (at < 0) return;
  const lane = rows[at]!.find(({ id }) => id === style.selected)!, thick = Math.max(high, 4), x = xOf(style);
  const from = Math.max(left + 1, x(lane.begin) - 2), to = Math.min(width - 1, x(lane.end) + 2);
  if (to <= from) return;
  context.strokeStyle = style.theme.text;
  context.lineWidth = 2;
  context.strokeRect(from, Math.max(1, (at + 0.5) * high - top - thick / 2), to - from, Math.min(thick, height - 2));
}

function writeName(context: CanvasRenderingContext2D, lane: Lane, y: number, { left, lane: high, theme, selected }: GanttStyle): void {
  context.fillStyle = lane.id === selected ? theme.text : theme.muted;
  context.fillText(fitted(context, lane.name, left - 12, 11), 6, y + high / 2 + 0.5);
}

const xOf = ({ window, left, width }: GanttStyle) => {
  const perNs = (width - left) / (window[1] - window[0]);
  return (ns: number): number => left + (ns - window[0]) * perNs;
};

function drawLane(context: CanvasRenderingContext2D, lane: Lane, y: number, style: GanttStyle): void {
  const { left, width, lane: high, theme } = style, x = xOf(style), gap = high > 5 ? 1 : 0;
  if (x(lane.end) < left || x(lane.begin) > width) return;
  context.save();
  context.beginPath();
  context.rect(left, y, width - left, high);
  context.clip();
  context.fillStyle = theme.muted;
  context.globalAlpha = 0.5;
  context.fillRect(x(lane.begin), y + high / 2 - 0.5, Math.max(1, x(lane.end) - x(lane.begin)), 1);
  context.globalAlpha = 1;
  for (const part of lane.parts) {
    const [from, to] = [x(part.begin), x(part.end)];
    if (to >= left && from <= width) drawPart(context, part, [from, to], y + gap, high - 2 * gap, style);
  }
  drawMarks(context, lane, y, style);
  context.restore();
}

function drawPart(context: CanvasRenderingContext2D, { state, steps }: Part, [from, to]: Range, y: number, high: number, style: GanttStyle) {
  const look = lookOf(state), wide = Math.max(to - from - (to - from > 4 ? 0.5 : 0), 0.75);
  context.globalAlpha = look.faint ? 0.35 : 1;
  context.fillStyle = style.colours[state] ?? style.theme.muted;
  context.fillRect(from, y, wide, high);
  context.globalAlpha = 1;
  const over = look.hatched && wide > 3 && high > 4 ? patternOf(context, "hatched", style.theme.text) : null;
  if (over) {
    context.fillStyle = over;
    context.fillRect(from, y, wide, high);
  }
  const text = steps > 1 ? `${look.text}, ${steps} steps` : look.text;
  if (high < roomyLane || wide < 60 || look.faint) return;
  const left = Math.max(from, style.left), room = Math.min(to, style.width) - left - 8;
  context.fillStyle = textOn(parseColour(style.colours[state] ?? "#808080"));
  if (room > 40 && !look.hatched) context.fillText(fitted(context, text, room, 11), left + 4, y + high / 2 + 0.5);
}

// The first token, the end, and what failed. The client's first token is a hollow mark.
function drawMarks(context: CanvasRenderingContext2D, lane: Lane, y: number, style: GanttStyle): void {
  const { lane: high, theme } = style, x = xOf(style), { row } = lane;
  if (high >= 4 && x(lane.end) - x(lane.begin) > roomyToken) {
    token(context, x(row["first_token_ns"] ?? NaN), y, high, theme, false);
    token(context, x(row["client"]?.["first_token_ns"] ?? NaN), y, high, theme, true);
  }
  if (!hasFailed(lane)) return;
  const at = x(row["end_ns"] ?? lane.end), middle = y + high / 2, reach = Math.max(2, Math.min(4, high / 2 - 1));
  context.strokeStyle = theme.error;
  context.lineWidth = 2.5;
  context.beginPath();
  for (const down of [-1, 1]) {
    context.moveTo(at - reach - 2, middle - down * reach);
    context.lineTo(at + reach - 2, middle + down * reach);
  }
  context.stroke();
}

function token(context: CanvasRenderingContext2D, x: number, y: number, high: number, theme: Theme, hollow: boolean): void {
  if (!Number.isFinite(x)) return;
  const reach = Math.min(5, high / 2 - 0.5), middle = y + high / 2;
  context.beginPath();
  context.moveTo(x, middle - reach);
  context.lineTo(x + reach * 0.8, middle);
  context.lineTo(x, middle + reach);
  context.lineTo(x - reach * 0.8, middle);
  context.closePath();
  context.fillStyle = hollow ? theme.surface : theme.text;
  context.strokeStyle = hollow ? theme.text : theme.surface;
  context.lineWidth = 1;
  context.fill();
  context.stroke();
}

// A pixel has the mean of the colours of what its requests were doing; paler where not all of them were there.
function drawMixed(context: CanvasRenderingContext2D, rows: Lane[][], states: string[], style: GanttStyle): void {
  const columns = Math.max(1, Math.floor(style.width - style.left)), high = Math.max(1, Math.min(rows.length, Math.floor(style.height)));
  const cells = mixture(rows, style.window, high, columns, states);
  const colours = states.map((state) => parseColour(style.colours[state] ?? "#808080"));
  const weights = states.map((state) => (lookOf(state).faint ? 0.35 : 1));
  const image = new ImageData(columns, high);
  for (let cell = 0; cell < high * columns; ++cell) {
    let [sum, red, green, blue] = [0, 0, 0, 0];
    for (let state = 0; state < states.length; ++state) {
      const share = cells[cell * states.length + state]! * weights[state]!;
      if (share === 0) continue;
      const [r, g, b] = colours[state]!;
      [sum, red, green, blue] = [sum + share, red + share * r, green + share * g, blue + share * b];
    }
    if (sum === 0) continue;
    image.data.set([red / sum, green / sum, blue / sum, 255 * Math.min(1, 0.25 + 0.75 * sum)], cell * 4);
  }
  const whole = document.createElement("canvas");
  whole.width = columns;
  whole.height = high;
  whole.getContext("2d")?.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(whole, style.left, 0, columns, style.height);
  const x = xOf(style);
  context.fillStyle = style.theme.error;  // what failed is never mixed away
  rows.forEach((row, at) => {
    for (const lane of row.filter(hasFailed))
      context.fillRect(x(lane.row["end_ns"] ?? lane.end) - 2, ((at + 0.5) * style.height) / rows.length - 1.5, 4, 3);
  });
}
