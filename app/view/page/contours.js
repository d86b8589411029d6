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

/** [{text, path: Path2D in image px, places: for a label}]; displacement: {u, v} in px, or nothing. */
export function contourLines(grid, values, levels, displacement) {
  return levels.map(({value: level, text}) => {
    const path = new Path2D(), middles = [];
    for (let j = 0; j + 1 < grid.ny; ++j)
      for (let i = 0; i + 1 < grid.nx; ++i) {
        const nodes = OFFSETS.map(([di, dj]) => (j + dj) * grid.nx + i + di);
        const corners = nodes.map((node) => values[node]);
        if (corners.some(Number.isNaN)) continue;
        const places = nodes.map((node, k) => ({
          x: grid.x0 + grid.step * (i + OFFSETS[k][0]) + (displacement?.u[node] ?? 0),
          y: grid.y0 + grid.step * (j + OFFSETS[k][1]) + (displacement?.v[node] ?? 0)}));
        for (const [from, to] of segments(corners, level)) {
          const a = crossing(places, corners, from, level), b = crossing(places, corners, to, level);
          path.moveTo(a.x, a.y);
          path.lineTo(b.x, b.y);
          middles.push({x: (a.x + b.x) / 2, y: (a.y + b.y) / 2});
        }
      }
    // Lines of a few cells are noise: they need no label.
    const places = middles.length < 12 ? [] : [0.5, 0.25, 0.75, 0.1, 0.9].map((share) => middles[Math.floor(share * middles.length)]);
    return {text, path, places};
  });
}

function crossing(places, corners, edge, level) {
  const [a, b] = EDGES[edge].map((corner) => ({value: corners[corner], ...places[corner]}));
  const share = (level - a.value) / (b.value - a.value);
  return {x: a.x + share * (b.x - a.x), y: a.y + share * (b.y - a.y)};
}
