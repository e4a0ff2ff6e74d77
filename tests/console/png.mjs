// Pictures of pages have few colours: as indexes into a table of 256 they take a third of the room.
import { crc32, deflateSync, inflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Takes a PNG of 8 bits for each of red, green and blue, as a browser makes it. */
export function indexed(png) {
  const { width, height, pixels } = decoded(png);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += 3) {
    const color = pixels.readUIntBE(at, 3);
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const table = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([color]) => color);
  const places = new Map(table.map((color, index) => [color, index]));
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const color = pixels.readUIntBE((y * width + x) * 3, 3);
      if (!places.has(color)) places.set(color, nearest(table, color));
      rows[y * (width + 1) + 1 + x] = places.get(color);
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.alloc(table.length * 3);
  table.forEach((color, index) => colors.writeUIntBE(color, index * 3, 3));
  return Buffer.concat([SIGNATURE, chunk("IHDR", head), chunk("PLTE", colors), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

function nearest(table, color) {
  const parts = (of) => [of >> 16, (of >> 8) & 255, of & 255];
  const wanted = parts(color);
  let [best, least] = [0, Infinity];
  table.forEach((known, index) => {
    const away = parts(known).reduce((sum, part, at) => sum + (part - wanted[at]) ** 2, 0);
    if (away < least) [best, least] = [index, away];
  });
  return best;
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

function decoded(png) {
  const parts = [];
  let [width, height] = [0, 0];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const name = png.toString("latin1", at + 4, at + 8);
    const data = png.subarray(at + 8, at + 8 + png.readUInt32BE(at));
    if (name === "IHDR") {
      [width, height] = [data.readUInt32BE(0), data.readUInt32BE(4)];
      if (data[8] !== 8 || data[9] !== 2 || data[12] !== 0) throw new Error("the browser made another kind of PNG");
    }
    if (name === "IDAT") parts.push(data);
  }
  const raw = inflateSync(Buffer.concat(parts));
  const line = width * 3;
  const pixels = Buffer.alloc(height * line);
  for (let y = 0; y < height; y += 1) {
    const filter = raw[y * (line + 1)];
    for (let x = 0; x < line; x += 1) {
      const left = x < 3 ? 0 : pixels[y * line + x - 3];
      const up = y === 0 ? 0 : pixels[(y - 1) * line + x];
      const corner = x < 3 || y === 0 ? 0 : pixels[(y - 1) * line + x - 3];
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter];
      pixels[y * line + x] = raw[y * (line + 1) + 1 + x] + guess;
    }
  }
  return { width, height, pixels };
}

function paeth(left, up, corner) {
  const [a, b, c] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}
