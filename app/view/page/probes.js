// Points, virtual extensometers, line cuts and areas, placed by mouse on the reference image.

import {CURVES} from "dic/colours.js";
import {parse, round, text} from "dic/shapes.js";

const BEND_PX = 8;  // px of the image

export const PROBE_KINDS = {
  point: {label: "Point", corners: 1}, extensometer: {label: "Extensometer", corners: 2},
  line: {label: "Line cut", corners: 2}, area: {label: "Area", corners: 0},
};

export class Probes {
  inImage = false;
  all = [];
  kind = null;  // kind of the probe that is being placed
  cursor = "grab";
  onplaced = () => {};
  /** {to(place), from(place)}: where the material of a place of the reference is drawn, and back. */
  motion = null;
  #draft = null;
  #held = null;
  #hover = null;

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
    const colour = CURVES.find((free) => !this.all.some((probe) => probe.colour === free)) ?? CURVES[this.all.length % CURVES.length];
    this.all.push({kind, points, colour, name: this.#newName(kind)});
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

  /** The probes as a project keeps them. */
  plain() { return this.all.map(({kind, points, colour, name}) => ({kind, points, colour, name})); }

  restore(probes) {
    this.#draft = this.#held = null;
    this.all = structuredClone(probes);
    this.onchange();
    this.stage.redraw();
  }

  #newName(kind) {
    const label = PROBE_KINDS[kind].label.toLowerCase();
    for (let n = 1; ; ++n) if (!this.all.some(({name}) => name === `${label} ${n}`)) return `${label} ${n}`;
  }

  // Pointer ---------------------------------------------------------------------------------------

  /** The place in the reference, tenths of a pixel, of one that was pointed at. */
  #inside(pointed) {
    const {x, y} = this.motion?.from(pointed) ?? pointed;
    const {width, height} = this.stage.image;
    return {x: round(Math.min(Math.max(x, 0), width - 1)), y: round(Math.min(Math.max(y, 0), height - 1))};
  }

  down(place) {
    if (!this.kind) return this.#grab(place);
    const at = this.#inside(place);
    const {corners} = PROBE_KINDS[this.kind];
    if (corners === 1) this.add(this.kind, [at]);
    else if (corners === 2) this.#draft = [at, at];
    else if (!this.#draft || !this.#near(this.#draft.at(-1), place)) {  // not the second press of a double click
      const closes = this.#draft?.length > 2 && this.#near(this.#draft[0], place);
      closes ? this.add("area", this.#draft) : (this.#draft ??= []).push(at);
    }
    this.stage.redraw();
    return true;
  }

  move(place, pressed) {
    this.#hover = place;
    if (pressed && this.#held) {
      this.#held.probe.points[this.#held.corner] = this.#inside(place);
      this.stage.redraw();
    } else if (pressed && this.#draft && PROBE_KINDS[this.kind]?.corners === 2) {
      this.#draft[1] = this.#inside(place);
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

  #drawn(place) { return this.motion?.to(place) ?? place; }

  #near(of, place) {
    const corner = this.#drawn(of);
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
    const points = this.kind === "area" && this.#hover ? [...this.#draft, this.#inside(this.#hover)] : this.#draft;
    this.#drawOne(context, stage, this.kind, points, "#ffffff", "");
  }

  /** Places along the sides, close enough together to show how the material has bent them. */
  #along(points, closed) {
    if (!this.motion) return points;
    return points.flatMap((a, k) => {
      const b = points[k + 1] ?? (closed ? points[0] : null);
      if (!b) return [a];
      const parts = Math.max(1, Math.ceil(Math.hypot(b.x - a.x, b.y - a.y) / BEND_PX));
      return Array.from({length: parts}, (_, i) => ({x: a.x + (i / parts) * (b.x - a.x), y: a.y + (i / parts) * (b.y - a.y)}));
    });
  }

  #drawOne(context, stage, kind, points, colour, name) {
    const onScreen = (point) => stage.toScreen(this.#drawn(point));
    const corners = points.map(onScreen), path = this.#along(points, kind === "area").map(onScreen);
    for (const [width, style] of [[4.5, "#ffffffc0"], [2.2, colour]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      path.forEach(({x, y}, k) => (k === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
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
