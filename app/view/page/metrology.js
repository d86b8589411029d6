// Bias and noise of a measurement from frames at rest and from frames that only moved rigidly. Standards define other figures: EN 4861
// compares with known displacements, VDI/VDE 2626 takes root mean squares over squares of averaged points.

import {STRAINS, namesOf} from "dic/quantities.js";

const DISPLACEMENTS = namesOf("displacement");

/** "1-3,7": the indices from 0 of frames that are numbered from 1. Throws Error, a sentence. */
export function framesOf(text, count) {
  const frames = new Set();
  for (const part of text.split(/[\s,;]+/).filter(Boolean)) {
    const found = /^(\d+)(?:[-–](\d+))?$/.exec(part), first = Number(found?.[1]), last = Number(found?.[2] ?? first);
    if (!found || first < 1 || last > count || last < first)
      throw new Error(`"${part}" names no frames: numbers from 1 to ${count}, as in 1-3,7.`);
    for (let k = first; k <= last; ++k) frames.add(k - 1);
  }
  return [...frames].sort((a, b) => a - b);
}

/** {mean, sd} of the values that are numbers. */
function momentsOf(values) {
  let count = 0, sum = 0;
  for (const value of values) if (!Number.isNaN(value)) { count += 1; sum += value; }
  const mean = sum / count;
  let squares = 0;
  for (const value of values) if (!Number.isNaN(value)) squares += (value - mean) ** 2;
  return {mean, sd: Math.sqrt(squares / count)};
}

/** The values of the points that are ok, NaN elsewhere. */
async function okValues(result, names, frame) {
  const arrays = await result.arrays([...names, "status"], frame), ok = result.meta.status_names.indexOf("ok");
  return Object.fromEntries(names.map((name) => [name, Float64Array.from(arrays[name], (value, i) => (arrays.status[i] === ok ? value : NaN))]));
}

/** Takes the rigid motion that fits best, by least squares, out of u and v. */
export function withoutRigidMotion(result, u, v) {
  const {nx, x0, y0, step} = result.grid, place = (i) => [(x0 + (i % nx) * step) * result.scale, (y0 + Math.floor(i / nx) * step) * result.scale];
  const known = [...u.keys()].filter((i) => !Number.isNaN(u[i]));
  const mean = (of) => known.reduce((sum, i) => sum + of(i), 0) / known.length;
  const x = mean((i) => place(i)[0]), y = mean((i) => place(i)[1]), du = mean((i) => u[i]), dv = mean((i) => v[i]);
  let along = 0, across = 0;
  for (const i of known) {
    const [a, b] = [place(i)[0] - x, place(i)[1] - y], [c, d] = [a + u[i] - du, b + v[i] - dv];
    along += a * c + b * d;
    across += a * d - b * c;
  }
  const angle = Math.atan2(across, along), cos = Math.cos(angle), sin = Math.sin(angle);
  const rest = {u: new Float64Array(u.length).fill(NaN), v: new Float64Array(v.length).fill(NaN), angle};
  for (const i of known) {
    const [a, b] = [place(i)[0] - x, place(i)[1] - y];
    rest.u[i] = u[i] - du - (cos * a - sin * b - a);
    rest.v[i] = v[i] - dv - (sin * a + cos * b - b);
  }
  return rest;
}

/**
 * [{name, bias, noise}] over the frames: mean of the means, root mean square of the standard deviations. With isMoved, a
 * displacement is what is left of it beside a rigid motion; its mean is then 0 by itself and bias is NaN.
 */
export async function figuresOf(result, frames, isMoved) {
  const names = [...DISPLACEMENTS, ...STRAINS].filter((name) => result.meta.arrays.includes(name)), all = [];
  for (const frame of frames) {
    const values = await okValues(result, names, frame);
    if (isMoved) Object.assign(values, withoutRigidMotion(result, values.u, values.v));
    all.push(Object.fromEntries(names.map((name) => [name, momentsOf(values[name])])));
  }
  const mean = (of) => all.reduce((sum, moments) => sum + of(moments), 0) / all.length;
  return names.map((name) => ({
    name, bias: isMoved && DISPLACEMENTS.includes(name) ? NaN : mean((m) => m[name].mean),
    noise: Math.sqrt(mean((m) => m[name].sd ** 2)),
  }));
}
