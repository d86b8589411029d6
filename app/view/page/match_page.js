// Template matching: draw or load a template, and see where it lies in the frames.

import {CURVES} from "dic/colours.js";
import {$, csv, download, h, labelled, number, say, section, select} from "dic/dom.js";
import {ImageLayer} from "dic/layers.js";
import {RegionEditor} from "dic/region_editor.js";
import {shape} from "dic/shapes.js";

/** Angles and scales that are searched: name, label, range. */
const ROTATIONS = [["fixed", "as in the template", null], ["small", "up to 10° to both sides", [-10, 10]], ["any", "any angle", [-180, 180]]];
const SCALES = [["fixed", "as in the template", null], ["small", "0.9 to 1.1", [0.9, 1.1]], ["large", "0.8 to 1.25", [0.8, 1.25]]];
const COLUMNS = ["x", "y", "center_x", "center_y", "score", "rotation_deg", "scale"];
const POSE_COLUMNS = ["sigma_x", "sigma_y", "sigma_rotation_deg", "sigma_scale", "visible"];
const FOUND = CURVES[1], POINTED_AT = CURVES[0];

const rangeOf = (choices, name) => choices.find(([choice]) => choice === name)?.[2] ?? null;

/** From the smaller to the larger of two places, as whole pixels of an image that has `size` of them. */
const inside = (a, b, size) => [Math.min(a, b), Math.max(a, b)].map((place) => Math.min(Math.max(Math.round(place), 0), size - 1));

/** The boxes of matches, numbered; the upper edge of the template is thick. */
class MatchLayer {
  inImage = false;
  matches = [];
  pointedAt = -1;

  draw(context, stage) {
    context.font = "600 12px system-ui, sans-serif";
    context.textBaseline = "bottom";
    this.matches.forEach(({corners, score}, k) => {
      const places = corners.map(([x, y]) => stage.toScreen({x, y}));
      const colour = k === this.pointedAt ? POINTED_AT : FOUND;
      for (const [style, width] of [["#0009", 4], [colour, 2]]) this.#line(context, [...places, places[0]], style, width);
      this.#line(context, places.slice(0, 2), colour, 4);
      const label = `${k + 1}: ${score.toFixed(3)}`, top = places.reduce((a, b) => (b.y < a.y ? b : a));
      context.lineWidth = 4;
      context.strokeStyle = "#fffd";
      context.fillStyle = "#111";
      context.strokeText(label, top.x, top.y - 3);
      context.fillText(label, top.x, top.y - 3);
    });
  }

  #line(context, places, style, width) {
    context.beginPath();
    places.forEach(({x, y}) => context.lineTo(x, y));
    context.strokeStyle = style;
    context.lineWidth = width;
    context.stroke();
  }
}

export class MatchPage {
  image = new ImageLayer();
  boxes = new MatchLayer();
  frame = 0;
  template = null;  // {frame, rect} or {path}: what is searched
  look = {rotation: "fixed", scale: "fixed", threshold: 0.5, most: 20};
  #found = new Map();  // what was found in each frame that was searched
  #search = 0;         // counts searches: only the last one goes on

  /** names: of the frames; chooser: a FileChooser. */
  constructor(source, names, stage, timeBar, chooser, onchange) {
    Object.assign(this, {source, names, stage, timeBar, chooser, onchange});
    this.editor = new RegionEditor(stage, {onchange: () => this.#drawn(), onscale: () => {}});
    this.editor.grid.show = false;
    this.editor.darkens = false;
    this.panel = this.#build();
    this.#use(null);
    this.#fillIn();
  }

  // Project ---------------------------------------------------------------------------------------

  collect() { return {template: this.template, look: {...this.look}}; }

  restore({template, look}) {
    Object.assign(this.look, look);
    const rect = template?.rect;
    this.editor.shapes = rect ? [shape("rectangle", [{x: rect[0], y: rect[1]}, {x: rect[0] + rect[2] - 1, y: rect[1] + rect[3] - 1}])] : [];
    this.#use(template);
    this.#fillIn();
  }

  async activate() {
    this.stage.layers = [this.image, this.editor, this.boxes];
    this.editor.setMode(this.template ? "select" : "rectangle");
    this.#showMode();
    this.stage.onhover = (place) => this.#hover(place);
    this.timeBar.attach(this);
    await this.showFrame(this.frame);
  }

  // Frames ----------------------------------------------------------------------------------------

  get frameCount() { return this.names.length; }

  async showFrame(frame) {
    try {
      const image = await this.source.frame(frame);
      this.image.set(image);
      this.frame = frame;
      if (document.body.dataset.tab === "match") this.stage.setImageSize(image.width * image.reduced, image.height * image.reduced);
    } catch (error) {
      say(error.message, "error");
    }
    this.#showFound();
  }

  #hover(place) {
    $("cursor").textContent = this.image.describe(place);
    this.stage.redraw();
  }

  // Panel -----------------------------------------------------------------------------------------

  #build() {
    const button = (id, label, hint, onclick, attributes = {}) => h("button", {id, type: "button", title: hint, onclick, ...attributes}, label);
    const choose = (id, choices, name) => select(choices, this.look[name], (value) => this.#set(name, value), {id});
    this.drawButton = button("match-draw", "Draw", "Drag a box around what is to be found", () => this.#choose("rectangle"));
    this.moveButton = button("match-move", "Move", "Drag the box or its corners", () => this.#choose("select"));
    this.picture = h("canvas", {id: "match-template", width: 1, height: 1});
    this.templateBox = h("p", {class: "hint", id: "match-template-name"});
    this.rotation = choose("match-rotation", ROTATIONS, "rotation");
    this.scale = choose("match-scale", SCALES, "scale");
    this.threshold = h("input", {type: "number", id: "match-threshold", min: -1, max: 1, step: 0.05,
      onchange: (event) => this.#set("threshold", Number(event.target.value))});
    this.most = h("input", {type: "number", id: "match-most", min: 1, max: 10000, step: 1,
      onchange: (event) => this.#set("most", Math.round(Number(event.target.value)))});
    this.table = h("table", {class: "frames matches", id: "match-table"});
    this.summary = h("p", {class: "hint", id: "match-summary"});
    return h("div", {},
      section("Template", true,
        h("div", {class: "tools", role: "toolbar"}, this.drawButton, this.moveButton,
          button("match-load", "Load…", "An image of what is to be found; its transparent pixels do not count", () => this.#load())),
        this.picture, this.templateBox),
      section("Search", true,
        labelled("angle", this.rotation, "Angles, against the template, at which it is searched and measured"),
        labelled("scale", this.scale, "Sizes, against the template, at which it is searched and measured"),
        labelled("lowest score", this.threshold, "1: equal but for brightness and contrast; what has nothing in common scores about 0"),
        labelled("most matches", this.most, "Per frame, the best ones"),
        h("div", {class: "row"},
          this.searchButton = button("match-search", "Search", "Searches the frame that is shown", () => this.#searchFrames([this.frame]), {class: "primary"}),
          this.allButton = button("match-all", "All frames", "One frame after the other", () => this.#searchFrames([...this.names.keys()])),
          this.stopButton = button("match-stop", "Stop", "Keeps what was found so far", () => { ++this.#search; this.#showState(false); }, {disabled: true}))),
      section("Matches", true, this.summary, h("div", {class: "scrolls"}, this.table),
        h("div", {class: "row"}, this.saveButton = button("match-save", "Save CSV", "The matches of all frames that were searched",
          () => download("matches.csv", csv(...this.rows()), "text/csv")))));
  }

  #fillIn() {
    this.rotation.value = this.look.rotation;
    this.scale.value = this.look.scale;
    this.threshold.value = this.look.threshold;
    this.most.value = this.look.most;
    this.allButton.hidden = this.names.length < 2;
    this.#showFound();
  }

  #set(name, value) {
    this.look[name] = value;
    this.#forget();
    this.onchange();
  }

  #choose(mode) {
    this.editor.setMode(mode);
    this.#showMode();
  }

  #showMode() {
    this.drawButton.setAttribute("aria-pressed", String(this.editor.mode === "rectangle"));
    this.moveButton.setAttribute("aria-pressed", String(this.editor.mode === "select"));
  }

  // Template --------------------------------------------------------------------------------------

  /** The last box that was drawn is the template. */
  #drawn() {
    if (!this.panel) return;
    if (this.editor.shapes.length > 1) this.editor.shapes = this.editor.shapes.slice(-1);
    this.editor.selected = this.editor.shapes.length - 1;
    if (this.editor.mode === "rectangle") this.#choose("select");
    const rect = this.editor.shapes.length > 0 ? this.#rect() : null;
    if (rect && String(rect) === String(this.template?.rect)) return;
    if (!rect && this.template?.path) return;
    this.#use(rect && {frame: this.frame, rect});
    this.onchange();
  }

  /** The box that was drawn, in whole pixels: [x, y, width, height]. */
  #rect() {
    const [a, b] = this.editor.shapes[0].points, {width, height} = this.stage.image;
    const [x0, x1] = inside(a.x, b.x, width), [y0, y1] = inside(a.y, b.y, height);
    return [x0, y0, x1 - x0 + 1, y1 - y0 + 1];
  }

  #load() {
    return this.chooser.open("Choose an image of the template", {takes: ["image"], use: (path) => {
      this.editor.shapes = [];
      this.#use({path});
      this.onchange();
    }});
  }

  #use(template) {
    this.template = template;
    this.#forget();
    this.#showTemplate(template);
  }

  async #showTemplate(template) {
    this.picture.hidden = !template;
    this.templateBox.textContent = "Drag a box around what is to be found, or load an image of it.";
    this.searchButton.disabled = this.allButton.disabled = !template;
    if (!template) return;
    try {
      const image = await this.source.template(template);
      if (template !== this.template) return;
      const layer = new ImageLayer();
      layer.set(image);
      Object.assign(this.picture, {width: image.width, height: image.height});
      const context = this.picture.getContext("2d");
      context.translate(0.5, 0.5);
      layer.draw(context, {view: {scale: 1}});
      const {width, height, reduced} = image;
      this.templateBox.textContent = `${template.path?.split("/").at(-1) ?? `${this.names[template.frame]}, from x ${template.rect[0]}, y ${template.rect[1]}`}: ` +
        `${template.rect?.[2] ?? width * reduced} × ${template.rect?.[3] ?? height * reduced} px`;
    } catch (error) {
      say(error.message, "error");
    }
  }

  // Search ----------------------------------------------------------------------------------------

  #forget() {
    ++this.#search;
    this.#found.clear();
    this.#showState(false);
    this.#showFound();
  }

  #showState(isSearching) {
    this.stopButton.disabled = !isSearching;
    this.searchButton.disabled = this.allButton.disabled = isSearching || !this.template;
  }

  async #searchFrames(frames) {
    const turn = ++this.#search, {threshold, most, rotation, scale} = this.look;
    this.#showState(true);
    try {
      for (const [k, frame] of frames.entries()) {
        say(frames.length > 1 ? `Searching frame ${k + 1} of ${frames.length}…` : "Searching…");
        const found = await this.source.match({frame, template: this.template, threshold, max_matches: most,
          rotations: rangeOf(ROTATIONS, rotation), scales: rangeOf(SCALES, scale)});
        if (turn !== this.#search) break;
        this.#found.set(frame, found);
        if (frame === this.frame) this.#showFound();
      }
      say(turn === this.#search ? "" : "Stopped.");
    } catch (error) {
      say(error.message, "error");
    }
    if (turn === this.#search) this.#showState(false);
    this.#showFound();
  }

  #showFound() {
    const found = this.#found.get(this.frame), all = [...this.#found.values()].reduce((sum, {matches}) => sum + matches.length, 0);
    this.boxes.matches = found?.matches ?? [];
    this.boxes.pointedAt = -1;
    this.saveButton.disabled = all === 0;
    const many = this.#found.size > 1 ? ` ${all} in ${this.#found.size} frames.` : "";
    this.summary.textContent = !found ? `This frame has not been searched.${many}`
      : found.matches.length === 0 ? `Nothing scores ${this.look.threshold} or more; the best score is ${found.best_score.toFixed(3)}.${many}`
        : `${found.matches.length} in this frame.${many}${found.timed_out ? " The time was over before the search ended." : ""}`;
    this.#fillTable(this.boxes.matches);
    if (document.body.dataset.tab === "match")
      this.timeBar.update(`${this.frame + 1} / ${this.names.length}  ${this.names[this.frame]}`);
    this.stage.redraw();
  }

  /** Places of the centres, in whose rows the mouse marks the box. */
  #fillTable(matches) {
    const turned = this.look.rotation !== "fixed", scaled = this.look.scale !== "fixed";
    const head = ["", "x, px", "y, px", ...(turned ? ["angle"] : []), ...(scaled ? ["scale"] : []), "score"];
    const row = (match, k) => h("tr", {
      onpointerenter: () => this.#pointAt(k), onpointerleave: () => this.#pointAt(-1),
      title: match.sigma_x === undefined ? "" : `x ± ${number(match.sigma_x, 2)} px, y ± ${number(match.sigma_y, 2)} px, ` +
        `angle ± ${number(match.sigma_rotation_deg, 2)}°, ${Math.round(100 * match.visible)} % visible`},
    [k + 1, match.center_x.toFixed(2), match.center_y.toFixed(2),
      ...(turned ? [`${match.rotation_deg.toFixed(2)}°`] : []), ...(scaled ? [match.scale.toFixed(3)] : []), match.score.toFixed(3)]
      .map((text) => h("td", {}, String(text))));
    this.table.replaceChildren(...(matches.length === 0 ? [] : [
      h("thead", {}, h("tr", {}, head.map((text) => h("th", {}, text)))), h("tbody", {}, matches.map(row))]));
  }

  #pointAt(index) {
    this.boxes.pointedAt = index;
    this.stage.redraw();
  }

  /** All matches as `dic match` prints them in CSV: [header, rows]. */
  rows() {
    const poses = this.look.rotation !== "fixed" || this.look.scale !== "fixed";
    const columns = [...COLUMNS, ...(poses ? POSE_COLUMNS : [])];
    return [["frame", "image", "template", ...columns], [...this.#found].sort(([a], [b]) => a - b).flatMap(
      ([frame, {image, template, matches}]) => matches.map((match) => [frame, image, template, ...columns.map((name) => match[name] ?? NaN)]))];
  }
}
