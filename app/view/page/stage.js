// The drawing area: one canvas in which the reference image can be moved and enlarged. Layers draw in image
// coordinates: pixel centres are whole numbers, y points down.

import {$} from "dic/dom.js";

const MOST_SCREEN_PX_PER_PX = 64;
const LEGEND_WIDTH = 120;  // screen px

export class Stage {
  layers = [];
  tool = null;  // {down, move, up, double, key}: with image coordinates; a tool that returns true keeps the pointer
  onhover = () => {};
  #drag = null;
  #queued = false;
  #fitted = true;

  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.view = {scale: 1, x: 0, y: 0};  // screen = scale * image + (x, y), CSS px
    this.image = {width: 1, height: 1};
    new ResizeObserver(() => this.#resize()).observe(canvas.parentElement);
    canvas.addEventListener("wheel", (event) => this.#wheel(event), {passive: false});
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointerleave", () => this.onhover(null));
    canvas.addEventListener("dblclick", (event) => this.tool?.double?.(this.#place(event), event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  get width() { return this.canvas.clientWidth; }
  get height() { return this.canvas.clientHeight; }

  setImageSize(width, height) {
    if (this.image.width === width && this.image.height === height) return;
    this.image = {width, height};
    this.fit();
  }

  fit() {
    const margin = 16, beside = this.width > 480 ? LEGEND_WIDTH : 0;
    const scale = Math.min((this.width - beside - 2 * margin) / this.image.width,
      (this.height - 2 * margin) / this.image.height);
    this.view.scale = Math.max(scale, 1e-3);
    this.view.x = (this.width - beside - this.view.scale * (this.image.width - 1)) / 2;
    this.view.y = (this.height - this.view.scale * (this.image.height - 1)) / 2;
    this.#fitted = true;
    this.redraw();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.min(Math.max(this.view.scale * factor, 1e-3), MOST_SCREEN_PX_PER_PX);
    const ratio = scale / this.view.scale;
    this.view = {scale, x: x - ratio * (x - this.view.x), y: y - ratio * (y - this.view.y)};
    this.#fitted = false;
    this.redraw();
  }

  pan(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.#fitted = false;
    this.redraw();
  }

  toImage(x, y) { return {x: (x - this.view.x) / this.view.scale, y: (y - this.view.y) / this.view.scale}; }
  toScreen({x, y}) { return {x: this.view.scale * x + this.view.x, y: this.view.scale * y + this.view.y}; }

  redraw() {
    if (this.#queued) return;
    this.#queued = true;
    requestAnimationFrame(() => {
      this.#queued = false;
      this.#draw();
    });
  }

  #draw() {
    const density = window.devicePixelRatio || 1;
    const {context, view} = this;
    if (!(this.width > 0 && this.height > 0)) return;  // the canvas is hidden: another page is shown
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    for (const layer of this.layers) {
      context.save();
      if (layer.inImage) context.transform(view.scale, 0, 0, view.scale, view.x, view.y);
      layer.draw(context, this);
      context.restore();
    }
  }

  #resize() {
    if (!(this.width > 0 && this.height > 0)) return;
    const density = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * density);
    this.canvas.height = Math.round(this.height * density);
    if (this.#fitted) this.fit();
    this.redraw();
  }

  #place(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.toImage(event.clientX - box.left, event.clientY - box.top);
  }

  #wheel(event) {
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX - box.left,
      event.clientY - box.top);
  }

  #down(event) {
    this.canvas.focus();
    this.canvas.setPointerCapture(event.pointerId);
    const takes = event.button === 0 && !event.shiftKey && this.tool?.down?.(this.#place(event), event);
    this.#drag = {pans: !takes, x: event.clientX, y: event.clientY};
  }

  #move(event) {
    const place = this.#place(event);
    if (this.#drag?.pans) {
      this.pan(event.clientX - this.#drag.x, event.clientY - this.#drag.y);
      Object.assign(this.#drag, {x: event.clientX, y: event.clientY});
      this.canvas.style.cursor = "grabbing";
    } else {
      this.tool?.move?.(place, this.#drag !== null, event);
    }
    this.onhover(place);
  }

  #up(event) {
    if (this.#drag && !this.#drag.pans) this.tool?.up?.(this.#place(event), event);
    this.#drag = null;
    this.canvas.style.cursor = this.tool?.cursor ?? "grab";
  }

  #key(event) {
    if (this.tool?.key?.(event)) return event.preventDefault();
    const step = 40;
    const moves = {ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step]};
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  setTool(tool) {
    this.tool = tool;
    this.canvas.style.cursor = tool?.cursor ?? "grab";
    this.redraw();
  }
}

export const stage = () => (Stage.only ??= new Stage($("canvas")));
