// Values of probes in a report, which has no program to ask: by the rules of dic/probe.hpp, with its words. `dic view`
// asks the program itself; tests/browser compares all three.

import {INVARIANTS, STRAINS, namesOf} from "dic/quantities.js";
import {contains} from "dic/shapes.js";

const ROUNDING = 1e-9;  // rounding errors of computed positions
const TEAR_SLOPE = 0.05, TEAR_SIGMAS = 12;  // the limits of dic/shared/tears.hpp
const STORED = namesOf("displacement", "sigma", "quality", "strain");
const OF_PROBES = [...STORED, ...Object.keys(INVARIANTS)];
const OF_EXTENSOMETERS = ["u", "v", "sigma_u", "sigma_v"];  // arrays of a report take a while to unpack

/** The nodes around a place that take part in its bilinear interpolation, none outside of the grid. */
function cornersAround(grid, {x, y}) {
  const fromLeft = (x - grid.x0) / grid.step, fromTop = (y - grid.y0) / grid.step;
  const fits = (value, count) => value >= -ROUNDING && value <= count - 1 + ROUNDING;
  if (!fits(fromLeft, grid.nx) || !fits(fromTop, grid.ny)) return [];
  const i = Math.min(Math.max(Math.floor(fromLeft + ROUNDING), 0), grid.nx - 1);
  const j = Math.min(Math.max(Math.floor(fromTop + ROUNDING), 0), grid.ny - 1);
  const fx = Math.max(fromLeft - i, 0), fy = Math.max(fromTop - j, 0);
  const corners = [];
  for (const dj of [0, 1])
    for (const di of [0, 1]) {
      const weight = (di ? fx : 1 - fx) * (dj ? fy : 1 - fy);
      if (weight > ROUNDING && i + di < grid.nx && j + dj < grid.ny) corners.push({i: i + di, j: j + dj, weight});
    }
  return corners;
}

/** One frame of a result, asked at places in px of the reference. */
class Frame {
  constructor(result, arrays) {
    Object.assign(this, {result, arrays, grid: result.grid});
    const {status_names: names} = result.meta;
    this.nameOf = (node) => names[arrays.status[node]];
  }

  static async read(result, frame, needed = STORED) {
    const names = [...needed.filter((name) => result.meta.arrays.includes(name)), "status"];
    const arrays = await result.arrays(names, frame);
    if (result.meta.corrected) {
      arrays.dx = await result.array("shift_x", 0);
      arrays.dy = await result.array("shift_y", 0);
    }
    return new Frame(result, arrays);
  }

  #node({i, j}) { return j * this.grid.nx + i; }

  /** All values of a node. */
  #valuesAt(node) {
    const {arrays} = this, values = {};
    for (const name of STORED) values[name] = arrays[name]?.[node] ?? NaN;
    const hasStrain = STRAINS.every((name) => arrays[name]);
    for (const [name, valueOf] of Object.entries(INVARIANTS)) values[name] = hasStrain ? valueOf(arrays, node) : NaN;
    return values;
  }

  // Cracks --------------------------------------------------------------------------------------

  #displacement(i, j) {
    const {grid, arrays} = this, node = this.#node({i, j});
    const known = i >= 0 && j >= 0 && i < grid.nx && j < grid.ny && this.nameOf(node) === "ok";
    const inPixels = (name) => (known ? arrays[name][node] / this.result.scale : NaN);
    return {u: inPixels("u"), v: inPixels("v"), sigma_u: inPixels("sigma_u"), sigma_v: inPixels("sigma_v")};
  }

  #isBesideTear({i, j}) {
    const at = (di, dj) => this.#displacement(i + di, j + dj), here = at(0, 0);
    const {step} = this.grid;
    return [[1, 0], [-1, 0], [0, 1], [0, -1]].some(([di, dj]) => {
      const before = at(-di, -dj), there = at(di, dj), beyond = at(2 * di, 2 * dj);
      const torn = (a, sigma) => isTorn(before[a], here[a], there[a], beyond[a],
        TEAR_SLOPE * step + TEAR_SIGMAS * (here[sigma] > there[sigma] ? here[sigma] : there[sigma]));
      return torn("u", "sigma_u") || torn("v", "sigma_v");
    }) && !this.#isSmooth(here, at);
  }

  #isSmooth(here, at) {
    const most = 0.99 * TEAR_SLOPE * this.grid.step;
    const along = (before, there) => ["u", "v"].every((a) => Math.abs(before[a] + there[a] - 2 * here[a]) < most);
    return along(at(-1, 0), at(1, 0)) && along(at(0, -1), at(0, 1));
  }

  // Places --------------------------------------------------------------------------------------

  #problem(corners) {
    const {x0, y0, step} = this.grid;
    if (corners.length === 0) return "outside the grid of points";
    const lost = corners.find((corner) => this.nameOf(this.#node(corner)) !== "ok");
    if (lost) return `the point (${x0 + lost.i * step}, ${y0 + lost.j * step}) beside it is ${this.nameOf(this.#node(lost))}`;
    return corners.length > 1 && corners.some((corner) => this.#isBesideTear(corner)) ? "beside a crack" : "";
  }

  point(at) {
    const corners = cornersAround(this.grid, at), problem = this.#problem(corners), values = {};
    for (const name of OF_PROBES) values[name] = problem ? NaN : 0;
    if (problem) return {...values, problem};
    for (const corner of corners)
      for (const [name, value] of Object.entries(this.#valuesAt(this.#node(corner)))) values[name] += corner.weight * value;
    return {...values, problem: Number.isNaN(values[STRAINS[0]]) ? "no strain: too few points in the strain window" : ""};
  }

  /** A place in length units; in corrected coordinates, if the result is. */
  #onSpecimen(at) {
    const {scale} = this.result, {dx, dy} = this.arrays;
    if (!dx) return {x: at.x * scale, y: at.y * scale};
    const place = {x: at.x * scale, y: at.y * scale}, corners = cornersAround(this.grid, at);
    if (corners.length === 0) return {x: NaN, y: NaN};
    for (const corner of corners) {
      place.x += corner.weight * dx[this.#node(corner)] * scale;
      place.y += corner.weight * dy[this.#node(corner)] * scale;
    }
    return place;
  }

  extensometer([a, b]) {
    const from = this.#onSpecimen(a), to = this.#onSpecimen(b), first = this.point(a), second = this.point(b);
    const gauge_length = Math.hypot(to.x - from.x, to.y - from.y);
    const problem = Number.isNaN(first.u) ? `first end: ${first.problem}`
      : Number.isNaN(second.u) ? `second end: ${second.problem}` : "";
    if (problem) return {gauge_length, change: NaN, strain: NaN, sigma_change: NaN, sigma_strain: NaN, problem};
    const x = to.x + second.u - from.x - first.u, y = to.y + second.v - from.y - first.v, length = Math.hypot(x, y);
    const change = length - gauge_length;
    const variance = (end) => ((x / length) * end.sigma_u) ** 2 + ((y / length) * end.sigma_v) ** 2;
    const sigma_change = Math.sqrt(variance(first) + variance(second));
    return {gauge_length, change, strain: change / gauge_length, sigma_change, sigma_strain: sigma_change / gauge_length,
      problem: ""};
  }

  line([a, b]) {
    const parts = Math.max(1, Math.ceil(Math.hypot(b.x - a.x, b.y - a.y) / this.grid.step - ROUNDING));
    const begin = this.#onSpecimen(a);
    return Array.from({length: parts + 1}, (_, k) => {
      const at = {x: a.x + (k / parts) * (b.x - a.x), y: a.y + (k / parts) * (b.y - a.y)}, on = this.#onSpecimen(at);
      return {distance: Math.hypot(on.x - begin.x, on.y - begin.y), ...this.point(at)};
    });
  }

  area(polygon) {
    const {grid} = this, nodes = [];
    for (let node = 0; node < grid.nx * grid.ny; ++node) {
      const i = node % grid.nx, j = (node - i) / grid.nx;
      if (this.nameOf(node) === "ok" && contains(polygon, {x: grid.x0 + i * grid.step, y: grid.y0 + j * grid.step}))
        nodes.push(this.#valuesAt(node));
    }
    return meanOf(nodes, "no point of the area is ok");
  }
}

function isTorn(before, here, there, beyond, tolerance) {
  const step = there - here, left = here - before, right = beyond - there;
  const otherLeft = Math.abs(step - left) > tolerance, otherRight = Math.abs(step - right) > tolerance;
  return (otherLeft && (otherRight || Number.isNaN(right))) || (otherRight && Number.isNaN(left));
}

/** The mean of each quantity over the places that have it. */
function meanOf(all, problem) {
  const values = {};
  for (const name of OF_PROBES) {
    const known = all.map((at) => at[name]).filter((value) => !Number.isNaN(value));
    values[name] = known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : NaN;
  }
  return {...values, problem: Number.isNaN(values.u) ? problem : ""};
}

/** The points of a line in a frame. */
export async function profileOf(result, points, frame) {
  return (await Frame.read(result, frame)).line(points);
}

/** The values in all frames: [{name: value, ..., problem}]; for lines and areas the means. */
export async function historyOf(result, kind, points, stopped) {
  const values = [];
  for (let k = 0; k < result.frames.length && !stopped(); ++k) {
    const frame = await Frame.read(result, k, kind === "extensometer" ? OF_EXTENSOMETERS : STORED);
    if (kind === "line") {
      const line = frame.line(points);
      values.push(meanOf(line, line[0].problem));
    } else {
      values.push(frame[kind](kind === "point" ? points[0] : points));
    }
  }
  return values;
}
