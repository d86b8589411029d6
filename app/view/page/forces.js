// Forces from a table of a testing machine, matched with the frames.

/** Factors to N and to s. Letter case counts where two units differ in it only (mN, MN). */
export const FORCE_UNITS = {N: 1, mN: 1e-3, kN: 1e3, MN: 1e6, daN: 10, lbf: 4.4482216152605, kip: 4448.2216152605, kgf: 9.80665};
const TIME_UNITS = {s: 1, sec: 1, ms: 1e-3, "µs": 1e-6, us: 1e-6, min: 60, h: 3600};

const FORCE_NAME = /(^|[^a-z])(force|load|kraft|f)([^a-z]|$)|kraft/i;
const NO_FORCE_NAME = /rate|step|cycle|cell|displacement|extension/i;
const TIME_NAME = /time|zeit|temps|^t($|[^a-z])/i;
const FRAME_NAME = /^(frame|image|bild)/i;

/** The unit that a heading names in brackets, behind a sign, or in the line below it; empty if there is none. */
function unitOf(title, below) {
  const text = below || title;
  const found = /[[({]\s*([^\])}]*?)\s*[\])}]\s*$/.exec(text) ?? (below ? [, below.trim()] : /[\s_/,:;]([^\s_/,:;]+)\s*$/.exec(title));
  return found ? found[1] : "";
}

/** The key of a unit: as it is written, else in the letter case that is the only one to fit. */
export function knownUnit(units, unit) {
  if (unit in units) return unit;
  const same = Object.keys(units).filter((key) => key.toLowerCase() === unit.toLowerCase());
  return same.length === 1 ? same[0] : null;
}

const isNumber = (cell) => /^[+-]?[\d.,]*\d[\d.,]*(e[+-]?\d+)?$/i.test(cell);

/** The cells of a line; they may stand in double quotes. */
function split(line, separator) {
  const cells = [""];
  let quoted = false;
  for (const c of line) {
    if (c === '"') quoted = !quoted;
    else if (c === separator && !quoted) cells.push("");
    else cells[cells.length - 1] += c;
  }
  return cells.map((cell) => cell.trim());
}

/**
 * {columns, rows}: columns have title, unit, kind ("force", "time", "frame" or null), factor to N or s (NaN if the unit is
 * unknown). Lines above the headings are skipped. Throws Error, a sentence, for a table that may be misread.
 */
export function parseTable(text) {
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const last = lines.at(-1) ?? "", separator = [";", "\t", ","].find((s) => last.includes(s)) ?? ";";
  const table = tableOf(lines, separator);
  return separator === "," && table.titles.length === 1 ? read(tableOf(lines, ";")) : read(table);  // "0,5" below one name
}

const isUnit = (cell) => cell === "" || /^[[({].*[\])}]$/.test(cell) || Boolean(knownUnit({...FORCE_UNITS, ...TIME_UNITS, mm: 1}, cell));

/** {titles, below, data}: cells of text; below: the line of units, if there is one. */
function tableOf(lines, separator) {
  const cells = lines.map((line) => split(line, separator)).filter((row) => row.some((cell) => cell !== ""));
  let first = cells.length;
  while (first > 0 && cells[first - 1].some(isNumber)) --first;
  if (first === cells.length) throw new Error("the table has no numbers.");
  if (first === 0) throw new Error("the table has no names above its numbers.");
  const hasUnits = first > 1 && cells[first - 1].every(isUnit);
  return {titles: cells[hasUnits ? first - 2 : first - 1], below: hasUnits ? cells[first - 1] : [], data: cells.slice(first)};
}

function read({titles, below, data}) {
  if (data.some((row) => row.slice(titles.length).some((cell) => cell !== "")))
    throw new Error("the table has more cells in a row than names: separate columns by semicolons where commas are decimal commas.");
  const comma = data.some((row) => row.some((cell) => isNumber(cell) && cell.includes(",")));
  const point = data.some((row) => row.some((cell) => isNumber(cell) && cell.includes(".")));
  if (comma && point) throw new Error("the table has numbers with commas and with points: write them with decimal points.");
  const value = (cell) => (isNumber(cell ?? "") ? Number(cell.replace(",", ".")) : NaN);
  const columns = titles.map((title, k) => columnOf(title, unitOf(title, below[k])));
  return {columns, rows: data.map((row) => titles.map((_, k) => value(row[k])))};
}

function columnOf(title, unit) {
  const force = knownUnit(FORCE_UNITS, unit), time = knownUnit(TIME_UNITS, unit);
  if (FRAME_NAME.test(title) && !TIME_NAME.test(title)) return {title, unit, kind: "frame", factor: 1};
  if (TIME_NAME.test(title)) return {title, unit, kind: "time", factor: time ? TIME_UNITS[time] : /[[({]/.test(title) ? NaN : 1};
  if (force && (FORCE_NAME.test(title) || /[[({]/.test(title))) return {title, unit: force, kind: "force", factor: FORCE_UNITS[force]};
  const named = FORCE_NAME.test(title) && !NO_FORCE_NAME.test(title);
  return {title, unit, kind: named ? "force" : null, factor: /[[({]/.test(title) ? NaN : 1};
}

/** The number of the only column of a kind; -1 if there is none or several. */
export function onlyColumn(table, kind) {
  const found = table.columns.flatMap((column, k) => (column.kind === kind ? [k] : []));
  return found.length === 1 ? found[0] : -1;
}

/**
 * The force of every frame. by: "row" (a row per current frame, with one for the reference above them or not), or the number
 * of the column with frame numbers or times, between whose rows is interpolated. NaN outside of the table.
 */
export function forcesOfFrames(table, column, by, frames) {
  if (by === "row") {
    const {rows} = table, before = rows.length === frames.length + 1 ? 1 : 0;
    if (rows.length !== frames.length + before) return frames.map(() => NaN);
    return frames.map((_, k) => rows[k + before][column]);
  }
  const {kind, factor} = table.columns[by];
  const known = table.rows.map((row) => [row[by] * (kind === "time" ? factor : 1), row[column]])
    .filter((pair) => pair.every(Number.isFinite)).sort((a, b) => a[0] - b[0]);
  return frames.map((frame) => interpolated(known, kind === "frame" ? frame.number ?? frame.time : frame.time));
}

function interpolated(pairs, x) {
  const after = pairs.findIndex(([at]) => at >= x);
  if (after < 0) return NaN;
  if (pairs[after][0] === x) return pairs[after][1];
  if (after === 0) return NaN;
  const [x0, y0] = pairs[after - 1], [x1, y1] = pairs[after];
  return y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
}
