// Shapes of a region of interest. A pixel is inside where any shape has it and no hole does; without shapes that are
// no holes, everywhere but in the holes.

const CIRCLE_CORNERS = 64;
const ON_OUTLINE = 1e-9;  // px

/** {kind: "polygon" | "rectangle" | "circle", hole, points}; a circle has its centre and a point on its outline. */
export const shape = (kind, points, hole = false) => ({kind, points, hole});

/** Corners of the outline. */
export function outline({kind, points}) {
  if (kind === "circle") {
    const [centre, on] = points;
    const radius = Math.hypot(on.x - centre.x, on.y - centre.y);
    return Array.from({length: CIRCLE_CORNERS}, (_, k) => {
      const angle = (2 * Math.PI * k) / CIRCLE_CORNERS;
      return {x: centre.x + radius * Math.cos(angle), y: centre.y + radius * Math.sin(angle)};
    });
  }
  if (kind === "rectangle") {
    const [a, b] = points;
    return [{x: a.x, y: a.y}, {x: b.x, y: a.y}, {x: b.x, y: b.y}, {x: a.x, y: b.y}];
  }
  return points;
}

/** A shape that drew this outline. */
export function fromOutline(corners, hole) {
  if (corners.length === 4 && corners[0].y === corners[1].y && corners[1].x === corners[2].x &&
      corners[2].y === corners[3].y && corners[3].x === corners[0].x)
    return shape("rectangle", [corners[0], corners[2]], hole);
  if (corners.length === CIRCLE_CORNERS) {
    const mean = (axis) => corners.reduce((sum, c) => sum + c[axis], 0) / corners.length;
    const centre = {x: round(mean("x")), y: round(mean("y"))};
    const radii = corners.map((c) => Math.hypot(c.x - centre.x, c.y - centre.y));
    if (Math.max(...radii) - Math.min(...radii) < 0.1)
      return shape("circle", [centre, {x: round(centre.x + radii[0]), y: centre.y}], hole);
  }
  return shape("polygon", corners, hole);
}

export const round = (value) => Math.round(value * 10) / 10;

/** "x,y x,y ...": as --roi-polygon takes it, hundredths of a pixel at most. */
export const text = (corners) => corners.map(({x, y}) => `${+x.toFixed(2)},${+y.toFixed(2)}`).join(" ");

/** The reverse; nothing where it is anything else. */
export function parse(line) {
  const corners = line.trim().split(/\s+/).map((word) => word.split(",").map(Number));
  if (corners.length < 3 || corners.some((c) => c.length !== 2 || c.some((value) => !Number.isFinite(value)))) return null;
  return corners.map(([x, y]) => ({x, y}));
}

/** By the even-odd rule, and on the outline, as the program fills polygons (lib/analysis/roi.cpp). */
export function contains(corners, {x, y}) {
  const crossings = [];
  for (let k = 0; k < corners.length; ++k) {
    let a = corners[k], b = corners[(k + 1) % corners.length];
    if (a.y > b.y) [a, b] = [b, a];
    if (a.y <= y && y < b.y) crossings.push(a.x + ((y - a.y) * (b.x - a.x)) / (b.y - a.y));
    const from = b.y - a.y <= ON_OUTLINE ? a.x : b.x;
    if (Math.abs(y - b.y) <= ON_OUTLINE && isBetween(x, Math.min(from, b.x), Math.max(from, b.x))) return true;
  }
  crossings.sort((a, b) => a - b);
  for (let k = 0; k + 1 < crossings.length; k += 2) if (isBetween(x, crossings[k], crossings[k + 1])) return true;
  return false;
}

const isBetween = (x, from, to) => x >= from - ON_OUTLINE && x <= to + ON_OUTLINE;

export function isInside(shapes, place) {
  const parts = shapes.filter((s) => !s.hole);
  return (parts.length === 0 || parts.some((s) => contains(outline(s), place))) &&
    !shapes.some((s) => s.hole && contains(outline(s), place));
}

/** Of all shapes, in whole px inside the image. */
export function boundingBox(shapes, image) {
  const corners = shapes.filter((s) => !s.hole).flatMap(outline);
  if (corners.length === 0) return {x0: 0, y0: 0, x1: image.width - 1, y1: image.height - 1};
  const xs = corners.map((c) => c.x), ys = corners.map((c) => c.y);
  return {
    x0: Math.max(0, Math.ceil(Math.min(...xs))), y0: Math.max(0, Math.ceil(Math.min(...ys))),
    x1: Math.min(image.width - 1, Math.floor(Math.max(...xs))), y1: Math.min(image.height - 1, Math.floor(Math.max(...ys))),
  };
}
