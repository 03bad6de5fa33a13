// Shapes that tell kinds apart without colour.
export type Shape = "circle" | "square" | "triangle" | "diamond";

// A path around (0, 0); all shapes of a radius have about the same area.
export function shapePath(shape: Shape, radius: number): string {
  const r = radius.toFixed(2);
  switch (shape) {
    case "circle": return `M${-radius} 0a${r} ${r} 0 1 0 ${2 * radius} 0a${r} ${r} 0 1 0 ${-2 * radius} 0Z`;
    case "square": { const s = radius * 0.89; return `M${-s} ${-s}H${s}V${s}H${-s}Z`; }
    case "triangle": { const t = radius * 1.35; return `M0 ${-t}L${t * 0.87} ${t / 2}H${-t * 0.87}Z`; }
    case "diamond": { const d = radius * 1.25; return `M0 ${-d}L${d} 0L0 ${d}L${-d} 0Z`; }
  }
}

export function ShapeKey({ shape }: { shape: Shape }) {
  return <svg width={14} height={14} viewBox="-7 -7 14 14" aria-hidden="true"><path d={shapePath(shape, 5)} fill="currentColor" /></svg>;
}
