// Labels beside points, the heaviest first, none over another: greedy, so some stay without.
export interface Anchor { x: number; y: number; radius: number; text: string }
export interface Rect { x: number; y: number; width: number; height: number }
export interface Placed extends Rect { anchor: Anchor }

export const labelHeight = 13;
const charWidth = 6.1, gap = 4;

const overlap = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const within = (inner: Rect, outer: Rect): boolean =>
  inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

export const textWidth = (text: string): number => text.length * charWidth;

// Where a text that leans lies, as boxes along it. angle in degrees, as SVG turns.
export function leaning(text: string, x: number, y: number, angle: number): Rect[] {
  const [right, down] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  return Array.from({ length: Math.ceil(textWidth(text) / labelHeight) }, (_, index) => {
    const along = index * labelHeight;
    return { x: x + along * right, y: y + along * down - labelHeight, width: labelHeight, height: labelHeight };
  });
}

// Right, left, above, below of the point.
function candidates({ x, y, radius, text }: Anchor): Rect[] {
  const width = textWidth(text), height = labelHeight, away = radius + gap;
  return [
    { x: x + away, y: y - height / 2, width, height }, { x: x - away - width, y: y - height / 2, width, height },
    { x: x - width / 2, y: y - away - height, width, height }, { x: x - width / 2, y: y + away, width, height },
  ];
}

export function placeLabels(anchors: Anchor[], area: Rect, most: number, taken: Rect[] = []): Placed[] {
  const placed: Placed[] = [];
  const marks: Rect[] = anchors.map(({ x, y, radius }) => ({ x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius }));
  for (const [index, anchor] of anchors.entries()) {
    if (placed.length >= most) break;
    // Heavier points keep clear; a label may cover lighter ones.
    const blocked = [...taken, ...placed, ...marks.slice(0, Math.max(index, most)).filter((_, other) => other !== index)];
    if (placed.some((other) => other.anchor.text === anchor.text && Math.hypot(other.anchor.x - anchor.x, other.anchor.y - anchor.y) < 40)) continue;
    const place = candidates(anchor).find((box) => within(box, area) && !blocked.some((other) => overlap(box, other)));
    if (place) placed.push({ ...place, anchor });
  }
  return placed;
}
