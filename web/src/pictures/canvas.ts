// Canvases that are sharp on every screen and in print.

const printRatio = 3;

export function prepare(canvas: HTMLCanvasElement, width: number, height: number, printing: boolean): CanvasRenderingContext2D | null {
  const ratio = printing ? printRatio : Math.max(1, window.devicePixelRatio || 1);
  const [wide, high] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

export type Pattern = "plain" | "hatched" | "crossed" | "dotted" | "underlined";

const cache = new Map<string, CanvasPattern | null>();

// A pattern to lay over a fill, in the colour of its text.
export function patternOf(context: CanvasRenderingContext2D, pattern: Pattern, colour: string): CanvasPattern | null {
  if (pattern === "plain" || pattern === "underlined") return null;
  const key = `${pattern} ${colour}`;
  if (!cache.has(key)) cache.set(key, makePattern(context, pattern, colour));
  return cache.get(key) ?? null;
}

function makePattern(context: CanvasRenderingContext2D, pattern: Pattern, colour: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const drawing = tile.getContext("2d");
  if (!drawing) return null;
  drawing.strokeStyle = drawing.fillStyle = colour;
  drawing.globalAlpha = 0.3;
  const line = (points: [number, number, number, number]) => {
    drawing.beginPath();
    drawing.moveTo(points[0], points[1]);
    drawing.lineTo(points[2], points[3]);
    drawing.stroke();
  };
  if (pattern === "hatched" || pattern === "crossed") for (const shift of [-8, 0, 8]) line([shift, 8, shift + 8, 0]);
  if (pattern === "crossed") for (const shift of [-8, 0, 8]) line([shift, 0, shift + 8, 8]);
  if (pattern === "dotted") for (const [x, y] of [[1, 1], [5, 5]] as const) drawing.fillRect(x, y, 2, 2);
  return context.createPattern(tile, "repeat");
}

export interface Area { x: number; y: number; width: number; height: number }

// An area with its pattern over it.
export function fillArea(context: CanvasRenderingContext2D, { x, y, width, height }: Area, fill: string, pattern: Pattern, ink: string): void {
  context.fillStyle = fill;
  context.fillRect(x, y, width, height);
  const over = width > 4 ? patternOf(context, pattern, ink) : null;
  if (over) {
    context.fillStyle = over;
    context.fillRect(x, y, width, height);
  }
  if (pattern === "underlined" && width > 1) {
    context.fillStyle = ink;
    context.fillRect(x, y + height - 2, width, 1.5);
  }
}

// As much of a text as fits; about: canvases measure slowly.
export function shorten(text: string, width: number, fontSize: number): string {
  const fits = Math.floor(width / (fontSize * 0.53));
  if (fits >= text.length) return text;
  return fits < 3 ? "" : `${text.slice(0, fits - 1)}…`;
}
