// A result: its description and the arrays of its frames, wherever they come from.

import {quantity} from "dic/quantities.js";

const CACHE_BYTES = 400e6;
const SAMPLED_FRAMES = 60;
const SAMPLED_NODES = 20000;

/** Arrays that were used last, up to a size. */
class Cache {
  #entries = new Map();
  #bytes = 0;

  get(key) {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  set(key, value, bytes) {
    this.#entries.set(key, {value, bytes});
    this.#bytes += bytes;
    for (const [old, entry] of this.#entries) {
      if (this.#bytes <= CACHE_BYTES || old === key) break;
      this.#entries.delete(old);
      this.#bytes -= entry.bytes;
    }
  }
}

export class Result {
  #cache = new Cache();
  #ranges = new Map();

  /**
   * meta: see view/result_json.hpp. load(name, frame): a promise of the values of all nodes, row by row;
   * status as Uint8Array, others as Float32Array.
   */
  constructor(meta, load) {
    this.meta = meta;
    this.grid = meta.grid;
    this.frames = meta.frames;
    this.load = load;
    /** Grid lengths are px; so many length units is one px. */
    this.scale = meta.scale_mm_per_px > 0 ? meta.scale_mm_per_px : 1;
  }

  /** More frames, behind those that are known. */
  grow(frames) {
    this.frames.push(...frames);
    this.#ranges.clear();
  }

  array(name, frame) {
    const key = `${name}/${frame}`;
    let values = this.#cache.get(key);
    if (!values) {
      values = this.load(name, frame);
      this.#cache.set(key, values, 4 * this.grid.nx * this.grid.ny);
    }
    return values;
  }

  /** An object of arrays by name. */
  async arrays(names, frame) {
    const all = await Promise.all(names.map((name) => this.array(name, frame)));
    return Object.fromEntries(names.map((name, k) => [name, all[k]]));
  }

  /** Values of a quantity at all nodes. */
  async values(id, frame) {
    const q = quantity(id);
    const arrays = await this.arrays(q.needs, frame);
    if (q.needs.length === 1 && q.needs[0] === id) return arrays[id];
    const values = new Float32Array(this.grid.nx * this.grid.ny);
    for (let i = 0; i < values.length; ++i) values[i] = q.value(arrays, i);
    return values;
  }

  /** 0.5 to 99.5 % of the values of one frame, and the true extremes. */
  async rangeOf(id, frame) {
    return rangeOfSample(await this.#sample(id, frame));
  }

  /** The same of the whole sequence; of long ones, of some frames evenly spaced. */
  async rangeOfAll(id) {
    if (!this.#ranges.has(id)) this.#ranges.set(id, this.#findRange(id));
    return this.#ranges.get(id);
  }

  async #findRange(id) {
    const count = Math.min(this.frames.length, SAMPLED_FRAMES);
    const samples = [];
    for (let k = 0; k < count; ++k) {
      const frame = count > 1 ? Math.round((k * (this.frames.length - 1)) / (count - 1)) : 0;
      samples.push(await this.#sample(id, frame, Math.ceil(SAMPLED_NODES / count)));
    }
    const range = rangeOfSample(Float32Array.from(samples.flatMap((sample) => [...sample])));
    return {...range, of: count < this.frames.length ? `${count} of ${this.frames.length} frames` : "all frames"};
  }

  async #sample(id, frame, size = SAMPLED_NODES) {
    const values = await this.values(id, frame);
    const stride = Math.max(1, Math.floor(values.length / size));
    return values.filter((value, i) => i % stride === 0 && !Number.isNaN(value));
  }

  /** Node (i, j) as fractions, from pixels of the reference. */
  toGrid(x, y) {
    return {i: (x - this.grid.x0) / this.grid.step, j: (y - this.grid.y0) / this.grid.step};
  }

  /** Values of a quantity less those of another result at the same places. NaN where the other has none. */
  async difference(other, id, frame) {
    const {nx, x0, y0, step} = this.grid, values = await this.values(id, frame);
    const those = await other.values(id, Math.min(frame, other.frames.length - 1));
    return values.map((value, i) => value - other.at(those, x0 + (i % nx) * step, y0 + Math.floor(i / nx) * step));
  }

  /** Bilinear between the four nodes around a place, NaN where one of them has no value; nothing outside. */
  at(values, x, y) {
    const {nx, ny} = this.grid;
    const {i, j} = this.toGrid(x, y);
    if (!(i >= 0 && j >= 0 && i <= nx - 1 && j <= ny - 1)) return NaN;
    const i0 = Math.min(Math.floor(i), Math.max(nx - 2, 0)), j0 = Math.min(Math.floor(j), Math.max(ny - 2, 0));
    const fx = i - i0, fy = j - j0;
    let sum = 0;
    for (const [di, wx] of [[0, 1 - fx], [1, fx]])
      for (const [dj, wy] of [[0, 1 - fy], [1, fy]])
        if (wx * wy > 0) sum += wx * wy * values[(j0 + dj) * nx + i0 + di];
    return sum;
  }

  /** The node next to a place, or -1. */
  nearest(x, y) {
    const at = this.toGrid(x, y);
    const i = Math.round(at.i), j = Math.round(at.j);
    return i >= 0 && j >= 0 && i < this.grid.nx && j < this.grid.ny ? j * this.grid.nx + i : -1;
  }
}

export function rangeOfSample(sample) {
  if (sample.length === 0) return {min: 0, max: 1, least: NaN, most: NaN};
  const sorted = sample.slice().sort();
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  let min = at(0.005), max = at(0.995);
  if (!(max > min)) {
    const half = Math.abs(min) * 1e-3 || 1e-6;
    [min, max] = [min - half, max + half];
  }
  return {min, max, least: sorted[0], most: sorted[sorted.length - 1]};
}
