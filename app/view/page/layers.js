// Layers of the stage: image, field, contour lines, vectors, grid.

import {contourLines} from "dic/contours.js";
import {STATUS_COLOURS, anchorsOf, table} from "dic/colours.js";
import {number} from "dic/dom.js";
import {principal, principalAngle} from "dic/quantities.js";
import {isDark} from "dic/theme.js";
import {niceBelow, ticks} from "dic/ticks.js";

const LABEL_ROOM = 55;  // screen px between the labels of contour lines

/** Values of an image as an ImageBitmap-like canvas, stretched between 0.5 and 99.5 % of them. */
function pictureOf(image) {
  const {width, height, values} = image;
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(width, height);
  const {low, high} = stretch(values);
  const factor = 255 / (high - low);
  for (let i = 0; i < values.length; ++i) {
    const grey = (values[i] - low) * factor;  // a Uint8ClampedArray rounds and clamps
    pixels.data[4 * i] = pixels.data[4 * i + 1] = pixels.data[4 * i + 2] = grey;
    pixels.data[4 * i + 3] = 255;
  }
  context.putImageData(pixels, 0, 0);
  return canvas;
}

function stretch(values) {
  if (values instanceof Uint8Array) return {low: 0, high: 255};
  const stride = Math.max(1, Math.floor(values.length / 50000));
  const sorted = values.filter((value, i) => i % stride === 0).sort();
  const low = sorted[Math.floor(0.005 * (sorted.length - 1))];
  const high = sorted[Math.ceil(0.995 * (sorted.length - 1))];
  return {low, high: high > low ? high : low + 1};
}

export class ImageLayer {
  inImage = true;
  opacity = 1;
  #picture = null;

  set(image) {
    this.image = image;
    this.#picture = image && pictureOf(image);
  }

  /** Grey level at a place, or nothing. */
  at({x, y}) {
    if (!this.image) return undefined;
    const {width, height, reduced, values} = this.image;
    const i = Math.floor((x + 0.5) / reduced), j = Math.floor((y + 0.5) / reduced);
    return i >= 0 && j >= 0 && i < width && j < height ? values[j * width + i] : undefined;
  }

  /** Position and grey level of a place in words; empty without a place. */
  describe(place) {
    if (!place) return "";
    const grey = this.at(place);
    return `x ${place.x.toFixed(1)}  y ${place.y.toFixed(1)} px${grey === undefined ? "" : `   grey ${number(grey)}`}`;
  }

  draw(context, stage) {
    if (!this.#picture) return;
    const {width, height, reduced} = this.image;
    context.imageSmoothingEnabled = stage.view.scale * reduced < 3;
    context.imageSmoothingQuality = "high";
    context.globalAlpha = this.opacity;
    context.drawImage(this.#picture, -0.5, -0.5, width * reduced, height * reduced);
  }
}

/** The four corners of cell (i, j) between nodes, where the nodes are in the current image. */
function cellPath(context, grid, u, v, node) {
  const corner = (k, x, y) => [x + u[k], y + v[k]];
  const i = node % grid.nx, j = (node - i) / grid.nx;
  const x = grid.x0 + i * grid.step, y = grid.y0 + j * grid.step, s = grid.step;
  context.beginPath();
  context.moveTo(...corner(node, x, y));
  context.lineTo(...corner(node + 1, x + s, y));
  context.lineTo(...corner(node + grid.nx + 1, x + s, y + s));
  context.lineTo(...corner(node + grid.nx, x, y + s));
  context.closePath();
}

export class FieldLayer {
  inImage = true;
  opacity = 0.75;
  smooth = true;
  side = null;  // "left" or "right": only that half of the drawing
  #canvas = null;
  #style = null;

  /** displacement: {u, v} in px shows the field where the material is now; else where it was. */
  set(grid, values, style, displacement = null) {
    this.grid = grid;
    this.values = values;
    this.displacement = displacement;
    this.#style = style;
    this.#canvas = values && !displacement ? this.#paint() : null;
  }

  /** Colours of all nodes, one pixel each. */
  #paint() {
    const {nx, ny} = this.grid;
    const canvas = new OffscreenCanvas(nx, ny);
    const context = canvas.getContext("2d");
    const pixels = context.createImageData(nx, ny);
    const colour = this.#colouring();
    for (let i = 0; i < nx * ny; ++i) {
      const c = colour(this.values[i]);
      if (!c) continue;
      pixels.data.set(c, 4 * i);
    }
    context.putImageData(pixels, 0, 0);
    return canvas;
  }

  /** value -> [r, g, b, 255] or nothing. */
  #colouring() {
    const {range, map, names} = this.#style;
    if (names) {
      const colours = names.map((name) => statusColour(name));
      return (status) => colours[status];
    }
    const colours = table(map), rgba = [];
    for (let i = 0; i < 256; ++i) rgba.push([colours[3 * i], colours[3 * i + 1], colours[3 * i + 2], 255]);
    const factor = 255 / (range.max - range.min);
    return (value) =>
      Number.isNaN(value) ? null : rgba[Math.min(Math.max(Math.round((value - range.min) * factor), 0), 255)];
  }

  draw(context, stage) {
    if (!this.values) return;
    if (this.side) this.#clip(context, stage);
    context.globalAlpha = this.opacity;
    if (this.displacement) return this.#drawMoved(context, stage);
    const {x0, y0, step, nx, ny} = this.grid;
    context.imageSmoothingEnabled = this.smooth && !this.#style.names;
    context.drawImage(this.#canvas, x0 - step / 2, y0 - step / 2, nx * step, ny * step);
  }

  #clip(context, stage) {
    const middle = stage.toImage(stage.width / 2, 0).x, left = stage.toImage(0, 0), right = stage.toImage(stage.width, stage.height);
    const x = this.side === "left" ? left.x : middle;
    context.beginPath();
    context.rect(x, left.y, (this.side === "left" ? middle : right.x) - x, right.y - left.y);
    context.clip();
    context.fillStyle = "#fff";
    context.fillRect(middle - 0.75 / stage.view.scale, left.y, 1.5 / stage.view.scale, right.y - left.y);
  }

  /** Cells are painted opaque, with outlines that close the seams between them. */
  #drawMoved(context, stage) {
    const {nx, ny} = this.grid, {u, v} = this.displacement, colour = this.#colouring(), {a, d, e, f} = context.getTransform();
    const cover = new OffscreenCanvas(stage.canvas.width, stage.canvas.height), c = cover.getContext("2d");
    c.setTransform(a, 0, 0, d, e, f);
    c.lineWidth = 0.7 / stage.view.scale;
    for (let j = 0; j + 1 < ny; ++j)
      for (let i = 0; i + 1 < nx; ++i) {
        const node = j * nx + i;
        const corners = [node, node + 1, node + nx, node + nx + 1];
        if (corners.some((k) => Number.isNaN(u[k]))) continue;
        const value = this.#style.names ? this.values[node] : corners.reduce((sum, k) => sum + this.values[k], 0) / 4;
        const rgb = colour(value);
        if (!rgb) continue;
        c.fillStyle = c.strokeStyle = `rgb(${rgb[0]} ${rgb[1]} ${rgb[2]})`;
        cellPath(c, this.grid, u, v, node);
        c.fill();
        c.stroke();
      }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(cover, 0, 0);
  }
}

function statusColour(name) {
  const hex = STATUS_COLOURS[name] ?? "#000000";
  const c = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return hex.length > 7 ? null : [...c, 255];
}

export class ContourLayer {
  inImage = true;
  enabled = false;
  #lines = [];

  /** levels: [{value, text}]; displacement: as in FieldLayer. */
  set(grid, values, levels, displacement = null) {
    this.#lines = this.enabled && values ? contourLines(grid, values, levels, displacement) : [];
  }

  draw(context, stage) {
    const px = 1 / stage.view.scale;
    for (const {path} of this.#lines)
      for (const [style, width] of [["#ffffffb0", 3], ["#111", 1.2]]) {
        context.strokeStyle = style;
        context.lineWidth = width * px;
        context.stroke(path);
      }
    context.font = `${12 * px}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 3 * px;
    context.strokeStyle = "#ffffffd0";
    context.fillStyle = "#111";
    const taken = [];
    for (const {text, places} of this.#lines) {
      const at = places.find((place) => taken.every((other) => Math.hypot(other.x - place.x, other.y - place.y) > LABEL_ROOM * px));
      if (!at) continue;
      taken.push(at);
      context.strokeText(text, at.x, at.y);
      context.fillText(text, at.x, at.y);
    }
  }
}

export class VectorLayer {
  inImage = false;
  kind = "none";  // "displacement", "principal"
  factor = 0;     // displacement: enlarged so many times; 0: so that the longest arrow is 40 screen px

  /** displacement: as in FieldLayer. */
  set(grid, arrays, pxPerUnit, displacement = null) {
    Object.assign(this, {grid, arrays, pxPerUnit, displacement});
  }

  draw(context, stage) {
    if (this.kind === "none" || !this.arrays) return;
    const nodes = this.#visibleNodes(stage);
    context.lineWidth = 1.5;
    context.strokeStyle = context.fillStyle = "#000";
    if (this.kind === "displacement") this.#drawArrows(context, stage, nodes);
    else this.#drawCrosses(context, stage, nodes);
  }

  /** Nodes at least 28 screen px apart. */
  #visibleNodes(stage) {
    const {x0, y0, step, nx, ny} = this.grid;
    const every = Math.max(1, Math.ceil(28 / (step * stage.view.scale)));
    const nodes = [];
    for (let j = every >> 1; j < ny; j += every)
      for (let i = every >> 1; i < nx; i += every) {
        const moved = this.displacement, k = j * nx + i;
        const at = stage.toScreen({x: x0 + i * step + (moved ? moved.u[k] : 0), y: y0 + j * step + (moved ? moved.v[k] : 0)});
        if (at.x >= 0 && at.y >= 0 && at.x <= stage.width && at.y <= stage.height) nodes.push({k, ...at});
      }
    return nodes;
  }

  #drawArrows(context, stage, nodes) {
    const {u, v} = this.arrays;
    let longest = 0;
    for (const {k} of nodes) if (u[k] === u[k]) longest = Math.max(longest, Math.hypot(u[k], v[k]));
    const perUnit = this.factor > 0 ? this.factor * this.pxPerUnit * stage.view.scale : longest > 0 ? 40 / longest : 0;
    for (const {k, x, y} of nodes) {
      if (Number.isNaN(u[k])) continue;
      outlined(context, (c) => arrow(c, x, y, u[k] * perUnit, v[k] * perUnit));
    }
  }

  #drawCrosses(context, stage, nodes) {
    let largest = 0;
    const all = nodes.map(({k, x, y}) => {
      const [e1, e2] = principal(this.arrays, k);
      return {x, y, e1, e2, angle: principalAngle(this.arrays, k)};
    }).filter((p) => !Number.isNaN(p.e1));
    for (const p of all) largest = Math.max(largest, Math.abs(p.e1), Math.abs(p.e2));
    for (const p of all)
      for (const [strain, angle, colour] of [[p.e1, p.angle, "#d55e00"], [p.e2, p.angle + Math.PI / 2, "#0072b2"]]) {
        const length = (12 * Math.abs(strain)) / largest;
        const dx = length * Math.cos(angle), dy = length * Math.sin(angle);
        outlined(context, (c) => {
          c.beginPath();
          c.moveTo(p.x - dx, p.y - dy);
          c.lineTo(p.x + dx, p.y + dy);
          c.stroke();
        }, colour);
      }
  }
}

function outlined(context, draw, colour = "#111") {
  context.lineWidth = 3.5;
  context.strokeStyle = "#ffffffb0";
  draw(context);
  context.lineWidth = 1.6;
  context.strokeStyle = colour;
  draw(context);
}

function arrow(context, x, y, dx, dy) {
  const length = Math.hypot(dx, dy), head = Math.min(6, length / 2), angle = Math.atan2(dy, dx);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + dx, y + dy);
  for (const side of [-0.5, 0.5]) {
    context.moveTo(x + dx, y + dy);
    context.lineTo(x + dx - head * Math.cos(angle + side), y + dy - head * Math.sin(angle + side));
  }
  context.stroke();
}

/** The bar that tells what the colours mean, and a scale bar. */
export class LegendLayer {
  inImage = false;
  isOnPaper = false;
  set(legend) { this.legend = legend; }

  draw(context, stage) {
    const size = stage.width > 1400 ? 1.35 : 1;  // a large screen is further away
    const area = {width: stage.width / size, height: stage.height / size, perPx: stage.view.scale / size};
    context.scale(size, size);
    const dark = isDark() && !this.isOnPaper;
    this.paper = dark ? "#1c2229e0" : "#ffffffd8";
    this.ink = dark ? "#e4e9ef" : "#111";
    if (this.legend) this.#drawBar(context, area);
    this.#drawScale(context, area);
  }

  #drawBar(context, area) {
    const {title, range, map, names} = this.legend;
    const shown = names?.filter((name) => STATUS_COLOURS[name]?.length === 7);
    const height = shown ? 20 * shown.length - 8 : Math.min(220, area.height - 120), left = area.width - 110, top = 40;
    if (height < 60) return;
    this.#panel(context, left - 14, 8, 116, height + 48);
    context.font = "600 12px system-ui, sans-serif";
    context.fillStyle = this.ink;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillText(title, left - 6, 21, 100);
    context.font = "12px system-ui, sans-serif";
    if (shown) return this.#drawNames(context, shown, left, top);
    const colours = context.createLinearGradient(0, top + height, 0, top);
    anchorsOf(map).forEach((colour, k, all) => colours.addColorStop(k / (all.length - 1), colour));
    context.fillStyle = colours;
    context.fillRect(left - 4, top, 16, height);
    context.fillStyle = this.ink;
    for (const {value, text} of ticks(range.min, range.max, 5)) {
      const y = top + ((range.max - value) / (range.max - range.min)) * height;
      context.fillRect(left + 12, y - 0.5, 4, 1);
      context.fillText(text, left + 20, y, 72);
    }
  }

  #drawNames(context, names, left, top) {
    names.forEach((name, k) => {
      context.fillStyle = STATUS_COLOURS[name];
      context.fillRect(left - 4, top + 20 * k, 12, 12);
      context.fillStyle = this.ink;
      context.fillText(name.replaceAll("_", " "), left + 12, top + 20 * k + 6, 84);
    });
  }

  #drawScale(context, area) {
    const {mmPerPx, unit} = this.legend?.scale ?? {mmPerPx: 1, unit: "px"};
    const perUnit = area.perPx / mmPerPx;
    const size = niceBelow(140 / perUnit), length = size * perUnit, y = area.height - 16;
    if (!(length > 10)) return;
    this.#panel(context, 8, y - 24, length + 20, 34);
    context.fillStyle = this.ink;
    context.fillRect(18, y, length, 3);
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.fillText(`${size} ${unit}`, 18, y - 6);
  }

  #panel(context, x, y, width, height) {
    context.fillStyle = this.paper;
    context.beginPath();
    context.roundRect(x, y, width, height, 6);
    context.fill();
  }
}
