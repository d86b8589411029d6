// Drawing and changing the region of interest with the mouse. Also the line of known length.

import {boundingBox, contains, isInside, outline, round, shape} from "dic/shapes.js";

const GRAB = 9;  // screen px

export class RegionEditor {
  inImage = false;
  shapes = [];
  selected = -1;
  hole = false;
  mode = "select";  // "select", "polygon", "rectangle", "circle", "scale"
  grid = {subset: 33, step: 5, show: true};
  darkens = true;  // what is outside of the shapes
  scaleLine = null;
  cursor = "crosshair";
  #draft = null;  // corners of the shape that is being drawn
  #held = null;   // corner or shape that the pointer moves
  #hover = null;

  constructor(stage, {onchange, onscale}) {
    this.stage = stage;
    this.onchange = onchange;
    this.onscale = onscale;
  }

  setMode(mode) {
    this.mode = mode;
    this.#draft = null;
    this.cursor = mode === "select" ? "default" : "crosshair";
    this.stage.setTool(this);
  }

  // Shapes ----------------------------------------------------------------------------------------

  change(make) {
    make();
    this.onchange();
    this.stage.redraw();
  }

  replace(shapes) {
    this.#draft = this.#held = null;
    this.selected = -1;
    this.change(() => { this.shapes = shapes; });
  }

  add(made) {
    this.change(() => {
      this.shapes.push(made);
      this.selected = this.shapes.length - 1;
    });
  }

  remove(index = this.selected) {
    if (index < 0) return;
    this.change(() => {
      this.shapes.splice(index, 1);
      this.selected = -1;
    });
  }

  // Pointer ---------------------------------------------------------------------------------------

  #clamped({x, y}) {
    const {width, height} = this.stage.image;
    return {x: round(Math.min(Math.max(x, 0), width - 1)), y: round(Math.min(Math.max(y, 0), height - 1))};
  }

  down(place) {
    const at = this.#clamped(place);
    if (this.mode === "select") return this.#grab(place);
    if (this.mode === "polygon") {
      if (this.#draft && this.#near(this.#draft.at(-1), place)) return true;  // the second press of a double click
      const closes = this.#draft?.length > 2 && this.#near(this.#draft[0], place);
      if (closes) this.#finishPolygon();
      else (this.#draft ??= []).push(at);
    } else {
      this.#draft = [at, at];
    }
    this.stage.redraw();
    return true;
  }

  move(place, pressed) {
    this.#hover = place;
    if (this.#held && pressed) this.#drag(place);
    else if (pressed && this.#draft && this.mode !== "polygon") this.#draft[1] = this.#clamped(place);
    this.stage.redraw();
  }

  up(place) {
    if (this.#held) {
      this.#held = null;
      this.onchange();
      return;
    }
    if (!this.#draft || this.mode === "polygon" || this.mode === "select") return;
    this.#draft[1] = this.#clamped(place);
    const [a, b] = this.#draft;
    this.#draft = null;
    if (Math.hypot(a.x - b.x, a.y - b.y) < 2) return;
    if (this.mode === "scale") {
      this.scaleLine = [a, b];
      this.onscale(Math.hypot(a.x - b.x, a.y - b.y));
    } else {
      this.add(shape(this.mode, [a, b], this.hole));
    }
    this.stage.redraw();
  }

  double() {
    if (this.mode === "polygon") this.#finishPolygon();
    else if (this.mode === "select" && this.#hover) this.#insertCorner(this.#hover);
  }

  key(event) {
    if (event.key === "Escape" && this.#draft) this.#draft = null;
    else if (event.key === "Enter" && this.#draft?.length > 2) this.#finishPolygon();
    else if (event.key === "Backspace" && this.mode === "polygon" && this.#draft) this.#draft.pop();
    else if ((event.key === "Delete" || event.key === "Backspace") && this.selected >= 0) this.remove();
    else return false;
    this.stage.redraw();
    return true;
  }

  #finishPolygon() {
    const corners = this.#draft;
    this.#draft = null;
    if (corners?.length > 2) this.add(shape("polygon", corners, this.hole));
  }

  #near(corner, place) {
    return Math.hypot(corner.x - place.x, corner.y - place.y) * this.stage.view.scale < GRAB;
  }

  /** A corner of any shape, or else a whole shape. */
  #grab(place) {
    for (const [index, s] of this.shapes.entries()) {
      const corner = s.points.findIndex((c) => this.#near(c, place));
      if (corner >= 0) return this.#hold({index, corner});
    }
    for (let index = this.shapes.length - 1; index >= 0; --index)
      if (contains(outline(this.shapes[index]), place)) return this.#hold({index, corner: -1, from: place});
    this.selected = -1;
    this.onchange();
    return false;  // the stage pans
  }

  #hold(held) {
    this.selected = held.index;
    this.#held = held;
    this.onchange();
    this.stage.redraw();
    return true;
  }

  #drag(place) {
    const held = this.#held, points = this.shapes[held.index].points;
    if (held.corner >= 0 && !(this.shapes[held.index].kind === "circle" && held.corner === 0)) {
      points[held.corner] = this.#clamped(place);
      return;
    }
    const from = held.from ?? points[0];
    const dx = place.x - from.x, dy = place.y - from.y;
    for (const point of points) {
      point.x = round(point.x + dx);
      point.y = round(point.y + dy);
    }
    held.from = {x: from.x + dx, y: from.y + dy};
  }

  /** A new corner on the side of the selected polygon that is next. */
  #insertCorner(place) {
    const made = this.shapes[this.selected];
    if (made?.kind !== "polygon" || made.points.some((corner) => this.#near(corner, place))) return;
    const distance = (k) => toSegment(place, made.points[k], made.points[(k + 1) % made.points.length]);
    const sides = made.points.map((_, k) => k).sort((a, b) => distance(a) - distance(b));
    this.change(() => made.points.splice(sides[0] + 1, 0, this.#clamped(place)));
  }

  // Drawing ---------------------------------------------------------------------------------------

  draw(context, stage) {
    if (this.darkens) this.#drawRegion(context, stage);
    if (this.grid.show) this.#drawGrid(context, stage);
    this.shapes.forEach((s, k) => this.#drawShape(context, stage, s, k === this.selected));
    if (this.scaleLine) this.#drawPath(context, stage, this.scaleLine, "#e69f00", false);
    if (this.#draft) this.#drawDraft(context, stage);
  }

  /** What is outside is darker. */
  #drawRegion(context, stage) {
    const all = new Path2D(), from = stage.toScreen({x: -0.5, y: -0.5}), {width, height} = stage.image;
    all.rect(from.x, from.y, width * stage.view.scale, height * stage.view.scale);
    const parts = this.shapes.filter((s) => !s.hole);
    if (parts.length > 0) {
      const cover = new OffscreenCanvas(stage.width, stage.height), c = cover.getContext("2d");
      c.fillStyle = "#0b1220";
      c.fill(all);
      c.globalCompositeOperation = "destination-out";
      for (const s of parts) c.fill(pathOf(stage, outline(s), true));
      context.globalAlpha = 0.45;
      context.drawImage(cover, 0, 0);
    }
    context.globalAlpha = 0.45;
    context.fillStyle = "#0b1220";
    for (const s of this.shapes) if (s.hole) context.fill(pathOf(stage, outline(s), true));
    context.globalAlpha = 1;
  }

  /** The points that would be measured, and one subset in true size. */
  #drawGrid(context, stage) {
    const {subset, step} = this.grid, box = boundingBox(this.shapes, stage.image);
    const every = Math.max(1, Math.ceil(7 / (step * stage.view.scale)));
    context.fillStyle = every > 1 ? "#00e0ff80" : "#00e0ff";
    const outlines = this.shapes.map((s) => ({hole: s.hole, kind: "polygon", points: outline(s)}));
    for (let y = box.y0; y <= box.y1; y += step * every)
      for (let x = box.x0; x <= box.x1; x += step * every) {
        const at = stage.toScreen({x, y});
        if (at.x < 0 || at.y < 0 || at.x > stage.width || at.y > stage.height) continue;
        if (isInside(outlines, {x, y})) context.fillRect(at.x - 1, at.y - 1, 2, 2);
      }
    const middle = this.#hover ?? {x: (box.x0 + box.x1) / 2, y: (box.y0 + box.y1) / 2};
    const half = subset / 2;
    this.#drawPath(context, stage, outline(shape("rectangle", [
      {x: Math.round(middle.x) - half, y: Math.round(middle.y) - half},
      {x: Math.round(middle.x) + half, y: Math.round(middle.y) + half}])), "#f0e442", true);
  }

  #drawShape(context, stage, s, selected) {
    this.#drawPath(context, stage, outline(s), s.hole ? "#d55e00" : "#00b4ff", true, selected ? 3 : 1.8);
    if (!selected && this.mode !== "select") return;
    for (const corner of s.points) handle(context, stage.toScreen(corner), selected);
  }

  #drawDraft(context, stage) {
    const colour = this.hole && this.mode !== "scale" ? "#d55e00" : this.mode === "scale" ? "#e69f00" : "#00b4ff";
    if (this.mode === "polygon") {
      this.#drawPath(context, stage, this.#hover ? [...this.#draft, this.#hover] : this.#draft, colour, false);
      for (const corner of this.#draft) handle(context, stage.toScreen(corner), true);
    } else if (this.mode === "scale") {
      this.#drawPath(context, stage, this.#draft, colour, false);
    } else {
      this.#drawPath(context, stage, outline(shape(this.mode, this.#draft)), colour, true);
    }
  }

  #drawPath(context, stage, corners, colour, closed, width = 1.8) {
    const path = pathOf(stage, corners, closed);
    context.lineWidth = width + 2;
    context.strokeStyle = "#00000080";
    context.stroke(path);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.stroke(path);
  }
}

function pathOf(stage, corners, closed) {
  const path = new Path2D();
  corners.forEach((corner, k) => {
    const {x, y} = stage.toScreen(corner);
    k === 0 ? path.moveTo(x, y) : path.lineTo(x, y);
  });
  if (closed) path.closePath();
  return path;
}

function handle(context, {x, y}, strong) {
  context.fillStyle = strong ? "#ffffff" : "#ffffffa0";
  context.strokeStyle = "#003050";
  context.lineWidth = 1.2;
  context.beginPath();
  context.arc(x, y, strong ? 5 : 4, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
}

function toSegment(p, a, b) {
  const dx = b.x - a.x, dy = b.y - a.y;
  const share = Math.min(Math.max(((p.x - a.x) * dx + (p.y - a.y) * dy) / (dx * dx + dy * dy || 1), 0), 1);
  return Math.hypot(p.x - a.x - share * dx, p.y - a.y - share * dy);
}
