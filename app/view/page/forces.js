// Forces from a CSV file, matched with the frames.

/** {header, rows}: separated by commas, semicolons or tabs; decimal commas where semicolons or tabs separate. */
export function parseTable(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const separator = [";", "\t", ","].find((s) => lines[0]?.includes(s)) ?? ",";
  const cells = lines.map((line) => line.split(separator).map((cell) => cell.trim().replace(/^"|"$/g, "")));
  const value = (cell) => (cell === "" ? NaN : Number(separator === "," ? cell : cell.replace(",", ".")));
  const hasHeader = (cells[0] ?? []).some((cell) => Number.isNaN(value(cell)));
  const rows = cells.slice(hasHeader ? 1 : 0).map((row) => row.map(value));
  const header = hasHeader ? cells[0] : (rows[0] ?? []).map((_, k) => `column ${k + 1}`);
  return {header, rows};
}

/**
 * The force of every frame. by: "row" (a row per current frame), or the number of the column with frame numbers or
 * times, between whose rows is interpolated. NaN outside of the table.
 */
export function forcesOfFrames(table, column, by, frames) {
  if (by === "row") return frames.map((_, k) => table.rows[k]?.[column] ?? NaN);
  const known = table.rows.filter((row) => Number.isFinite(row[by]) && Number.isFinite(row[column]))
    .sort((a, b) => a[by] - b[by]);
  return frames.map((frame) => interpolated(known.map((row) => [row[by], row[column]]), frame.time));
}

function interpolated(pairs, x) {
  const after = pairs.findIndex(([at]) => at >= x);
  if (after < 0) return NaN;
  if (pairs[after][0] === x) return pairs[after][1];
  if (after === 0) return NaN;
  const [x0, y0] = pairs[after - 1], [x1, y1] = pairs[after];
  return y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
}
