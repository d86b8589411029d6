// Probes of a stereo result: what the arrays of the images say, and the values in space from X, Y, Z and U, V, W.

import {STEREO} from "dic/quantities.js";
import {MOTIONS, PLACES} from "dic/surface.js";
import {contains} from "dic/shapes.js";

const NAMES = STEREO.map(({id}) => id);

/** Stereo arrays of one frame, as far as the result has them. */
const arraysOf = (result, frame) => result.arrays(NAMES.filter((name) => result.meta.arrays.includes(name)), frame);

function atPoint(result, arrays, {x, y}) {
  return Object.fromEntries(Object.entries(arrays).map(([name, values]) => [name, result.at(values, x, y)]));
}

/** The mean of the nodes inside that have a value. */
function inArea(result, arrays, points) {
  const {nx, ny, x0, y0, step} = result.grid, inside = [];
  for (let k = 0; k < nx * ny; ++k)
    if (contains(points, {x: x0 + (k % nx) * step, y: y0 + Math.floor(k / nx) * step})) inside.push(k);
  return Object.fromEntries(Object.entries(arrays).map(([name, values]) => {
    const known = inside.map((k) => values[k]).filter((value) => !Number.isNaN(value));
    return [name, known.reduce((sum, value) => sum + value, 0) / known.length];
  }));
}

const length = (from, to) => Math.hypot(...from.map((value, axis) => to[axis] - value));

/** The change of the straight distance between two points in space. */
function inSpace(result, arrays, ends) {
  const [a, b] = ends.map((place) => atPoint(result, arrays, place));
  const places = [a, b].map((at) => PLACES.map((name) => at[name]));
  const moved = [a, b].map((at) => PLACES.map((name, axis) => at[name] + at[MOTIONS[axis]]));
  const gauge = length(...places), change = length(...moved) - gauge;
  return {gauge_length: gauge, change, strain: change / gauge, sigma_strain: NaN};
}

/** history: that of the images; isOver(): whether the answer is not wanted any more. */
export async function stereoHistory(result, kind, points, history, isOver) {
  const frames = [];
  for (const [k, values] of history.entries()) {
    if (isOver()) return history;
    const arrays = await arraysOf(result, k);
    if (kind === "extensometer") frames.push({...values, ...inSpace(result, arrays, points)});
    else if (kind === "area") frames.push({...values, ...inArea(result, arrays, points)});
    else if (kind === "point") frames.push({...values, ...atPoint(result, arrays, points[0])});
    else frames.push({...values, ...meanAlong(result, arrays, points)});
  }
  return frames;
}

function meanAlong(result, arrays, points) {
  const steps = 100, [a, b] = points;
  const along = Array.from({length: steps + 1}, (_, k) => atPoint(result, arrays,
    {x: a.x + (b.x - a.x) * k / steps, y: a.y + (b.y - a.y) * k / steps}));
  return Object.fromEntries(Object.keys(arrays).map((name) => {
    const known = along.map((at) => at[name]).filter((value) => !Number.isNaN(value));
    return [name, known.reduce((sum, value) => sum + value, 0) / known.length];
  }));
}

/** profile: that of the images, whose points lie evenly between both ends of the line. */
export async function stereoProfile(result, points, frame, profile) {
  const arrays = await arraysOf(result, frame), [a, b] = points, last = Math.max(profile.length - 1, 1);
  return profile.map((at, k) => ({...at, ...atPoint(result, arrays,
    {x: a.x + (b.x - a.x) * k / last, y: a.y + (b.y - a.y) * k / last})}));
}
