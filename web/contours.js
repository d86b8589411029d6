// Contour lines of values on a grid, by marching squares; cells with a missing corner have none.

/** Where a line crosses the edges of a cell; corners: top left, top right, bottom right, bottom left. */
const EDGES = [[0, 1], [1, 2], [2, 3], [3, 0]];
const OFFSETS = [[0, 0], [1, 0], [1, 1], [0, 1]];

/** Segments in one cell: pairs of edges. A saddle is decided by the mean of the corners. */
function segments(corners, level) {
  const crossed = EDGES.map(([a, b], edge) => ((corners[a] < level) !== (corners[b] < level) ? edge : -1))
    .filter((edge) => edge >= 0);
  if (crossed.length < 4) return crossed.length === 2 ? [crossed] : [];
  const mean = (corners[0] + corners[1] + corners[2] + corners[3]) / 4;
  return (mean < level) === (corners[0] < level) ? [[0, 1], [2, 3]] : [[3, 0], [1, 2]];
}

/** [{level, path: Path2D in image px, place: of a label}] */
export function contourLines(grid, values, levels) {
  return levels.map((level) => {
    const path = new Path2D(), middles = [];
    for (let j = 0; j + 1 < grid.ny; ++j)
      for (let i = 0; i + 1 < grid.nx; ++i) {
        const corners = OFFSETS.map(([di, dj]) => values[(j + dj) * grid.nx + i + di]);
        if (corners.some(Number.isNaN)) continue;
        for (const [from, to] of segments(corners, level)) {
          const a = crossing(grid, i, j, corners, from, level), b = crossing(grid, i, j, corners, to, level);
          path.moveTo(a.x, a.y);
          path.lineTo(b.x, b.y);
          middles.push({x: (a.x + b.x) / 2, y: (a.y + b.y) / 2});
        }
      }
    return {level, path, segments: middles.length, place: middles[middles.length >> 1]};
  });
}

function crossing(grid, i, j, corners, edge, level) {
  const [a, b] = EDGES[edge];
  const share = (level - corners[a]) / (corners[b] - corners[a]);
  const at = (axis) => OFFSETS[a][axis] + share * (OFFSETS[b][axis] - OFFSETS[a][axis]);
  return {x: grid.x0 + grid.step * (i + at(0)), y: grid.y0 + grid.step * (j + at(1))};
}
