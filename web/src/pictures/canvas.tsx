// Canvases that are sharp on every screen and in print.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { categoryCount, categoryVariable, type Diverging, parseColour, textOn } from "./drawing";
import { classVariable, gaps, kernelClasses } from "./timeline/gaps";

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
  const fits = Math.floor(width / (fontSize * 0.58));
  if (fits >= text.length) return text;
  return fits < 3 ? "" : `${text.slice(0, fits - 1)}…`;
}

// As much of a text as fits, measured; "" where that is hardly anything.
export function fitted(context: CanvasRenderingContext2D, text: string, width: number, fontSize: number): string {
  let room = width;
  for (let tries = 0; tries < 4; ++tries) {
    const short = shorten(text, room, fontSize), wide = context.measureText(short).width;
    if (wide <= width) return short;
    room *= (0.97 * width) / wide;
  }
  return "";
}

// Colours of the page for what is drawn on a canvas, which knows no style sheet: read from the custom properties of
// pictures.css, again whenever light turns dark, or the page is printed.
export interface Theme {
  categories: string[]; onCategories: string[];  // fills, and text on them
  gaps: string[]; classes: string[];             // of timeline/gaps.ts
  kinds: Record<string, string>;                 // of frames in a flame graph
  text: string; muted: string; grid: string; surface: string; accent: string; idle: string; line: string; error: string;
  diverging: Diverging; font: string; printing: boolean;
}

export const frameKinds = ["python", "native", "range", "module", "copy", "other"];

export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const categories = Array.from({ length: categoryCount }, (_, index) => read(categoryVariable(index)));
  return {
    gaps: gaps.map((gap) => read(gap.variable)), classes: kernelClasses.map((_, index) => read(classVariable(index))),
    kinds: Object.fromEntries(frameKinds.map((kind) => [kind, read(`--p-kind-${kind}`)])),
    categories, onCategories: categories.map((colour) => textOn(parseColour(colour))),
    text: read("--p-text"), muted: read("--p-muted"), grid: read("--p-grid"), surface: read("--p-surface"),
    accent: read("--p-accent"), idle: read("--p-idle"), line: read("--p-line"), error: read("--p-error"),
    diverging: { less: parseColour(read("--p-less")), none: parseColour(read("--p-none")), more: parseColour(read("--p-more")) },
    font: style.fontFamily, printing: matchMedia("print").matches,
  };
}

// null until the element is in the page.
export function useTheme(element: Element | null): Theme | null {
  const [theme, setTheme] = useState<Theme | null>(null);
  useEffect(() => {
    if (!element) return;
    const renew = () => setTheme(readTheme(element));
    renew();
    const queries = ["(prefers-color-scheme: dark)", "print"].map((query) => matchMedia(query));
    for (const query of queries) query.addEventListener("change", renew);
    const observer = new MutationObserver(renew);
    observer.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "data-theme"] });
    return () => {
      for (const query of queries) query.removeEventListener("change", renew);
      observer.disconnect();
    };
  }, [element]);
  return theme;
}

// An element as state (set it as ref) and its inner width in CSS pixels; 0 until it is in the page.
export function useWidth<E extends HTMLElement>(): [E | null, (element: E | null) => void, number] {
  const [element, setElement] = useState<E | null>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element) return;
    const observer = new ResizeObserver((entries) => {
      const last = entries[entries.length - 1];
      if (last) setWidth(Math.floor(last.contentRect.width));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [element, setElement, width];
}

// Beside the pointer, on the side that has room. x and width in pixels of the picture.
export function Tip({ x, y, width, children }: { x: number; y: number; width: number; children: ComponentChildren }) {
  const style = x < width / 2 ? { left: `${x + 14}px`, top: `${y + 14}px` } : { right: `${width - x + 14}px`, top: `${y + 14}px` };
  return <div class="p-tip" style={style} aria-hidden="true">{children}</div>;
}
