// Small grey images: written as PNG, read by the browser, compared by how much ink lies where. What is compared survives
// other fonts and antialiasing; a part that is missing or empty does not pass.
import { deflateSync } from "node:zlib";

const levels = 16;

function crc(bytes) {
  let value = ~0;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; ++bit) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return ~value >>> 0;
}

function chunk(name, data) {
  const out = Buffer.alloc(12 + data.length);
  out.writeUInt32BE(data.length, 0);
  out.write(name, 4, "latin1");
  data.copy(out, 8);
  out.writeUInt32BE(crc(out.subarray(4, 8 + data.length)), 8 + data.length);
  return out;
}

// Of 16 shades of grey, two pixels a byte.
export function png({ width, height, grey }) {
  const row = 1 + Math.ceil(width / 2), raw = Buffer.alloc(row * height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) raw[y * row + 1 + (x >> 1)] |= (grey[y * width + x] >> 4) << (x % 2 ? 0 : 4);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = Math.log2(levels);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", header), chunk("IDAT", deflateSync(raw, { level: 9 })),
                        chunk("IEND", Buffer.alloc(0))]);
}

// A PNG as one byte of grey a pixel. `tab` is any page of the browser.
export async function read(tab, file) {
  const [width, height, text] = await tab.evaluate(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    let grey = "";
    for (let at = 0; at < data.length; at += 4) grey += String.fromCharCode(Math.round(0.3 * data[at] + 0.59 * data[at + 1] + 0.11 * data[at + 2]));
    return [image.width, image.height, btoa(grey)];
  }, `data:image/png;base64,${file.toString("base64")}`);
  return { width, height, grey: Buffer.from(text, "base64") };
}

const columns = 12;

// How dark a part of an image is, on a coarse grid over it, each cell with a share of its neighbours'.
function grid({ width, height, grey }, part, rows) {
  const cells = Array.from({ length: rows * columns }, () => ({ ink: 0, pixels: 0 }));
  for (let y = Math.max(0, Math.floor(part.y)); y < Math.min(height, part.y + part.height); ++y) {
    for (let x = Math.max(0, Math.floor(part.x)); x < Math.min(width, part.x + part.width); ++x) {
      const row = Math.floor(((y + 0.5 - part.y) / part.height) * rows), column = Math.floor(((x + 0.5 - part.x) / part.width) * columns);
      const cell = cells[Math.min(rows - 1, Math.max(0, row)) * columns + Math.min(columns - 1, Math.max(0, column))];
      cell.ink += 255 - (grey[y * width + x] & 0xf0);
      cell.pixels += 1;
    }
  }
  const ink = cells.map((cell) => (cell.pixels ? cell.ink / cell.pixels : 0) - 15);  // white is 15: of 16 shades
  return ink.map((_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    let sum = 0, weight = 0;
    for (const [down, right, share] of [[0, 0, 2], [-1, 0, 1], [1, 0, 1], [0, -1, 1], [0, 1, 1]]) {
      if (row + down < 0 || row + down >= rows || column + right < 0 || column + right >= columns) continue;
      sum += share * Math.max(0, ink[(row + down) * columns + column + right]);
      weight += share;
    }
    return sum / weight;
  });
}

export const limits = { height: 1.4, ink: 1.6, different: 0.4 };

// What differs between two parts, in words; "" nothing that matters.
export function difference(one, its, other, others) {
  const tall = Math.max(its.height, others.height) / Math.max(1, Math.min(its.height, others.height));
  if (tall > limits.height && Math.abs(its.height - others.height) > 12) return `is ${its.height.toFixed(0)} instead of ${others.height.toFixed(0)} high`;
  const rows = Math.max(1, Math.min(16, Math.round(others.height / 10)));
  const [a, b] = [grid(one, its, rows), grid(other, others, rows)];
  const sum = (values) => values.reduce((all, value) => all + value, 0), [inkA, inkB] = [sum(a), sum(b)];
  const faint = 0.2 * rows * columns;  // hardly anything in either
  if (Math.max(inkA, inkB) < faint) return "";
  if (Math.max(inkA, inkB) > limits.ink * Math.min(inkA, inkB)) return `has ${(inkA / Math.max(1, inkB)).toFixed(2)} times the ink`;
  const share = sum(a.map((value, at) => Math.abs(value - b[at]))) / (inkA + inkB);
  return share > limits.different ? `looks different: ${(100 * share).toFixed(0)} % of the ink lies elsewhere` : "";
}
