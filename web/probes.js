// Points, virtual extensometers, line cuts and areas, placed by mouse on the reference image, and their values.

import {CURVES} from "dic/colours.js";
import {contains, parse, round, text} from "dic/shapes.js";

export const PROBE_KINDS = {
  point: {label: "Point", corners: 1}, extensometer: {label: "Extensometer", corners: 2},
  line: {label: "Line cut", corners: 2}, area: {label: "Area", corners: 0},
};

export class Probes {
  inImage = false;
  all = [];
  kind = null;  // of the probe that is being placed
  cursor = "grab";
  onplaced = () => {};
  #draft = null;
  #held = null;
  #hover = null;
  #numbers = {};

  constructor(stage, onchange) {
    this.stage = stage;
    this.onchange = onchange;
  }

  place(kind) {
    this.kind = kind;
    this.#draft = null;
    this.cursor = kind ? "crosshair" : "grab";
    this.stage.setTool(this);
  }

  add(kind, points) {
    const n = (this.#numbers[kind] = (this.#numbers[kind] ?? 0) + 1);
    const colour = CURVES[this.all.length % CURVES.length];
    this.all.push({kind, points, colour, name: `${PROBE_KINDS[kind].label.toLowerCase()} ${n}`});
    this.#draft = null;
    this.place(null);
    this.onchange();
    this.onplaced();
  }

  remove(probe) {
    this.all = this.all.filter((other) => other !== probe);
    this.onchange();
    this.stage.redraw();
  }

  /** Corners typed as "x,y x,y"; false where they do not fit the kind. */
  retype(probe, line) {
    const {corners} = PROBE_KINDS[probe.kind];
    const padding = " 0,0".repeat(corners === 0 ? 0 : 3 - corners);
    const typed = parse(line + padding);
    if (!typed || (corners > 0 && typed.length !== 3)) return false;
    probe.points = corners > 0 ? typed.slice(0, corners) : typed;
    this.onchange();
    this.stage.redraw();
    return true;
  }

  // Pointer ---------------------------------------------------------------------------------------

  down(place, event) {
    const at = {x: round(place.x), y: round(place.y)};
    if (!this.kind) return this.#grab(place);
    const {corners} = PROBE_KINDS[this.kind];
    if (corners === 1) this.add(this.kind, [at]);
    else if (corners === 2) this.#draft = [at, at];
    else if (event.detail < 2) {
      const closes = this.#draft?.length > 2 && this.#near(this.#draft[0], place);
      closes ? this.add("area", this.#draft) : (this.#draft ??= []).push(at);
    }
    this.stage.redraw();
    return true;
  }

  move(place, pressed) {
    this.#hover = place;
    if (pressed && this.#held) {
      this.#held.probe.points[this.#held.corner] = {x: round(place.x), y: round(place.y)};
      this.stage.redraw();
    } else if (pressed && this.#draft && PROBE_KINDS[this.kind]?.corners === 2) {
      this.#draft[1] = {x: round(place.x), y: round(place.y)};
      this.stage.redraw();
    } else if (this.#draft) {
      this.stage.redraw();
    }
  }

  up() {
    if (this.#held) {
      this.#held = null;
      this.onchange();
    } else if (this.#draft && PROBE_KINDS[this.kind]?.corners === 2) {
      const [a, b] = this.#draft;
      if (Math.hypot(a.x - b.x, a.y - b.y) > 2) this.add(this.kind, [a, b]);
    }
  }

  double() {
    if (this.kind === "area" && this.#draft?.length > 2) this.add("area", this.#draft);
  }

  key(event) {
    if (event.key === "Escape" && this.kind) this.place(null);
    else if (event.key === "Enter" && this.kind === "area" && this.#draft?.length > 2) this.add("area", this.#draft);
    else return false;
    return true;
  }

  #near(corner, place) {
    return Math.hypot(corner.x - place.x, corner.y - place.y) * this.stage.view.scale < 9;
  }

  #grab(place) {
    for (const probe of this.all) {
      const corner = probe.points.findIndex((c) => this.#near(c, place));
      if (corner < 0) continue;
      this.#held = {probe, corner};
      return true;
    }
    return false;
  }

  // Drawing ---------------------------------------------------------------------------------------

  draw(context, stage) {
    for (const probe of this.all) this.#drawOne(context, stage, probe.kind, probe.points, probe.colour, probe.name);
    if (!this.#draft) return;
    const points = this.kind === "area" && this.#hover ? [...this.#draft, this.#hover] : this.#draft;
    this.#drawOne(context, stage, this.kind, points, "#ffffff", "");
  }

  #drawOne(context, stage, kind, points, colour, name) {
    const corners = points.map((point) => stage.toScreen(point));
    for (const [width, style] of [[4.5, "#ffffffc0"], [2.2, colour]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      corners.forEach(({x, y}, k) => (k === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
      if (kind === "area") context.closePath();
      context.stroke();
    }
    for (const {x, y} of corners) {
      context.fillStyle = colour;
      context.strokeStyle = "#fff";
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(x, y, 4.5, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
    context.font = "600 12px system-ui, sans-serif";
    context.lineWidth = 3.5;
    context.strokeStyle = "#ffffffd0";
    context.strokeText(name, corners[0].x + 8, corners[0].y - 8);
    context.fillStyle = "#111";
    context.fillText(name, corners[0].x + 8, corners[0].y - 8);
  }
}

export const corners = (probe) => text(probe.points);

// Values ------------------------------------------------------------------------------------------

/** Nodes inside a polygon. */
export function nodesInside(grid, polygon) {
  const nodes = [];
  for (let j = 0; j < grid.ny; ++j)
    for (let i = 0; i < grid.nx; ++i)
      if (contains(polygon, {x: grid.x0 + i * grid.step, y: grid.y0 + j * grid.step})) nodes.push(j * grid.nx + i);
  return nodes;
}

/** Values along a line, a step apart: [{distance, value}], distance in length units. */
export function profile(result, points, values) {
  const [a, b] = points, length = Math.hypot(b.x - a.x, b.y - a.y);
  const count = Math.max(2, Math.round(length / result.grid.step) + 1);
  return Array.from({length: count}, (_, k) => {
    const share = k / (count - 1);
    const value = result.at(values, a.x + share * (b.x - a.x), a.y + share * (b.y - a.y));
    return {distance: share * length * result.scale, value};
  });
}

/** Mean of the values that there are; NaN without any. */
export function mean(values) {
  let sum = 0, count = 0;
  for (const value of values) if (!Number.isNaN(value)) sum += value, count += 1;
  return count > 0 ? sum / count : NaN;
}

/** Length of an extensometer now, over that in the reference, minus 1; u, v in length units. */
export function extension(result, points, u, v) {
  const [a, b] = points.map((p) => ({
    x: p.x * result.scale + result.at(u, p.x, p.y), y: p.y * result.scale + result.at(v, p.x, p.y),
  }));
  const before = Math.hypot(points[1].x - points[0].x, points[1].y - points[0].y) * result.scale;
  return Math.hypot(b.x - a.x, b.y - a.y) / before - 1;
}

/** The value of a probe in a frame: an extensometer's strain, or the quantity at, along or over the others. */
export async function valueOf(result, probe, id, frame) {
  if (probe.kind === "extensometer") {
    const {u, v} = await result.arrays(["u", "v"], frame);
    return extension(result, probe.points, u, v);
  }
  const values = await result.values(id, frame);
  if (probe.kind === "point") return result.at(values, probe.points[0].x, probe.points[0].y);
  if (probe.kind === "line") return mean(profile(result, probe.points, values).map((at) => at.value));
  return mean(nodesInside(result.grid, probe.points).map((node) => values[node]));
}

/** Of all frames; stopped(): true where it is no longer wanted. */
export async function history(result, probe, id, stopped) {
  const values = [];
  for (let frame = 0; frame < result.frames.length; ++frame) {
    if (stopped()) return null;
    values.push(await valueOf(result, probe, id, frame));
  }
  return values;
}
