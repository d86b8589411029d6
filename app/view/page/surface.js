// The measured surface of a stereo result in 3-D: coloured by a field, turned with the mouse. Drawn on the stage's canvas, without the
// graphics processor, which remote desktops often lack. Orthographic, so that the length scale holds everywhere.

import {table} from "dic/colours.js";
import {isDark} from "dic/theme.js";

const MOST_CELLS = 30000;  // larger grids are drawn with every second, third ... node
const SHARE = 0.42;        // radius of the surface, as a share of the image's shorter side
const RADIANS_PER_PX = 0.01;
const NEAR = 14;           // screen px between the pointer and the node that it reads

/** Arrays of a stereo result: places in the reference and displacements, mm. */
export const PLACES = ["X", "Y", "Z"], MOTIONS = ["U", "V", "W"];

export class SurfaceLayer {
  inImage = false;
  cursor = "grab";
  turn = {yaw: -0.6, pitch: 0.35};  // rad, about the vertical and then about the horizontal axis of the screen
  factor = 1;                       // displacements are drawn so many times as large
  #last = null;

  constructor(stage) { this.stage = stage; }

  /** arrays: those of PLACES and MOTIONS; style: as in FieldLayer. Null for none. */
  set(grid, arrays, values, style) {
    Object.assign(this, {grid, arrays, values, style});
    if (arrays) this.#measure();
  }

  /** Centre and radius of the surface in the reference, so that a frame's motion is seen. */
  #measure() {
    const {arrays} = this, sum = [0, 0, 0];
    let count = 0;
    for (let k = 0; k < this.values.length; ++k) {
      if (Number.isNaN(arrays.Z[k])) continue;
      PLACES.forEach((name, axis) => { sum[axis] += arrays[name][k]; });
      ++count;
    }
    this.centre = sum.map((total) => total / count);
    this.radius = 0;
    for (let k = 0; k < this.values.length; ++k) {
      const distance = Math.hypot(...PLACES.map((name, axis) => arrays[name][k] - this.centre[axis]));
      if (distance > this.radius) this.radius = distance;
    }
  }

  /** Rows of the rotation from the axes of the result to right, down and away on the screen. */
  rotation() {
    const {yaw, pitch} = this.turn, [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
    return [[cy, 0, sy], [sp * sy, cp, -sp * cy], [-cp * sy, sp, cp * cy]];
  }

  /** Screen px per mm, and the middle of the drawing. */
  #frame() {
    const {width, height} = this.stage.image, middle = this.stage.toScreen({x: (width - 1) / 2, y: (height - 1) / 2});
    return {perMm: SHARE * Math.min(width, height) * this.stage.view.scale / (this.radius || 1), ...middle};
  }

  /** mm per px of the image that the stage shows, for the scale of the legend; zooming leaves it as it is. */
  mmPerPx() { return this.stage.view.scale / this.#frame().perMm; }

  /** Screen coordinates of all nodes, and their distances away from the viewer, mm; NaN where a place is missing. */
  project() {
    const [right, down, away] = this.rotation(), {perMm, x, y} = this.#frame(), {arrays, centre, factor} = this;
    const n = this.values.length, found = {x: new Float32Array(n), y: new Float32Array(n), depth: new Float32Array(n)};
    for (let k = 0; k < n; ++k) {
      const a = arrays.X[k] + factor * arrays.U[k] - centre[0], b = arrays.Y[k] + factor * arrays.V[k] - centre[1];
      const c = arrays.Z[k] + factor * arrays.W[k] - centre[2];
      found.x[k] = x + perMm * (right[0] * a + right[1] * b + right[2] * c);
      found.y[k] = y + perMm * (down[0] * a + down[1] * b + down[2] * c);
      found.depth[k] = away[0] * a + away[1] * b + away[2] * c;
    }
    return found;
  }

  /** Nodes of the first corner of every cell that is whole, the farthest first. */
  #cells(depth, every) {
    const {nx, ny} = this.grid, cells = [];
    for (let j = 0; j + every < ny; j += every)
      for (let i = 0; i + every < nx; i += every) {
        const node = j * nx + i;
        if (this.#corners(node, every).every((k) => !Number.isNaN(depth[k]) && !Number.isNaN(this.values[k]))) cells.push(node);
      }
    return cells.sort((a, b) => depth[b] - depth[a]);
  }

  #corners(node, every) { return [node, node + every, node + every * (this.grid.nx + 1), node + every * this.grid.nx]; }

  /** Colour of a cell by its value; darker where the surface is inclined to the view. */
  #colour(corners, light) {
    const {range, map, names} = this.style;
    const colours = table(names ? "viridis" : map), mean = corners.reduce((sum, k) => sum + this.values[k], 0) / 4;
    const at = 3 * Math.min(Math.max(Math.round(255 * (mean - range.min) / (range.max - range.min)), 0), 255);
    return `rgb(${[0, 1, 2].map((c) => Math.round(colours[at + c] * light)).join(" ")})`;
  }

  draw(context) {
    if (!this.arrays) return;
    const {grid} = this, every = Math.ceil(Math.sqrt(grid.nx * grid.ny / MOST_CELLS)), {x, y, depth} = this.project();
    const {perMm} = this.#frame();
    context.lineWidth = 0.7;
    for (const node of this.#cells(depth, every)) {
      const corners = this.#corners(node, every), [a, b, , d] = corners;
      // Cosine between the normal and the view, from the cell's area on the screen and in space.
      const ab = [x[b] - x[a], y[b] - y[a], perMm * (depth[b] - depth[a])], ad = [x[d] - x[a], y[d] - y[a], perMm * (depth[d] - depth[a])];
      const normal = [ab[1] * ad[2] - ab[2] * ad[1], ab[2] * ad[0] - ab[0] * ad[2], ab[0] * ad[1] - ab[1] * ad[0]];
      context.fillStyle = context.strokeStyle = this.#colour(corners, 0.55 + 0.45 * Math.abs(normal[2]) / (Math.hypot(...normal) || 1));
      context.beginPath();
      corners.forEach((k, at) => (at === 0 ? context.moveTo(x[k], y[k]) : context.lineTo(x[k], y[k])));
      context.closePath();
      context.fill();
      context.stroke();
    }
    this.#drawAxes(context);
  }

  /** The directions of x, y and z in the lower left corner, above the length scale. */
  #drawAxes(context) {
    const rotation = this.rotation(), from = {x: 60, y: this.stage.height - 100};
    context.strokeStyle = context.fillStyle = isDark() ? "#e4e9ef" : "#111";
    context.lineWidth = 1.5;
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    PLACES.forEach((name, axis) => {
      const [dx, dy] = [rotation[0][axis], rotation[1][axis]];
      context.beginPath();
      context.moveTo(from.x, from.y);
      context.lineTo(from.x + 34 * dx, from.y + 34 * dy);
      context.stroke();
      context.fillText(name, from.x + 46 * dx, from.y + 46 * dy);
    });
  }

  /** The node that is drawn next to a place in the image, the nearest to the viewer; -1 for none. */
  nodeAt(place) {
    if (!this.arrays) return -1;
    const at = this.stage.toScreen(place), {x, y, depth} = this.project();
    let found = -1, least = NEAR;
    for (let k = 0; k < x.length; ++k) {
      const distance = Math.hypot(x[k] - at.x, y[k] - at.y);
      if (distance < least || (distance < NEAR / 2 && found >= 0 && depth[k] < depth[found] - this.radius / 10)) [found, least] = [k, distance];
    }
    return found;
  }

  // Tool of the stage ------------------------------------------------------------------------------

  down(place) {
    this.#last = this.stage.toScreen(place);
    return true;
  }

  move(place, pressed) {
    if (!pressed || !this.#last) return;
    const at = this.stage.toScreen(place);
    this.#rotate(at.x - this.#last.x, at.y - this.#last.y);
    this.#last = at;
  }

  up() { this.#last = null; }

  key(event) {
    const turns = {ArrowLeft: [-20, 0], ArrowRight: [20, 0], ArrowUp: [0, -20], ArrowDown: [0, 20]}[event.key];
    if (turns) this.#rotate(...turns);
    return Boolean(turns);
  }

  #rotate(dx, dy) {
    this.turn.yaw -= dx * RADIANS_PER_PX;
    this.turn.pitch = Math.min(Math.max(this.turn.pitch + dy * RADIANS_PER_PX, -Math.PI / 2), Math.PI / 2);
    this.stage.redraw();
  }
}
