// Calibration: choose images of a target, see what was found in them, and keep the camera file.

import {CURVES} from "dic/colours.js";
import {$, h, labelled, number, say, section, select} from "dic/dom.js";
import {ImageLayer} from "dic/layers.js";
import {facts} from "dic/setup_page.js";
import {niceBelow} from "dic/ticks.js";

/** Roles of images: label, hint, what the chooser takes and its title. */
const ROLES = {
  left: ["target images", "A folder of 15 or more, tilted to all sides, which together cover the image to its corners", "frames",
    "Choose the folder with images of the target"],
  plane: ["on the specimen", "One image with the target lying on the specimen: scale and perspective", "image",
    "Choose the image with the target on the specimen"],
  right: ["right camera", "Of two cameras: a folder with the images of the right one, in the same order", "frames",
    "Choose the folder with the images of the right camera"],
};
const PATTERNS = [["checkerboard", "checkerboard"], ["circles", "circles"], ["acircles", "circles, every second row shifted"], ["charuco", "ChArUco board"],
  ["rings", "dots, three of them rings"]];
const MODELS = [["k1", "k1: few images"], ["k1k2", "k1, k2"], ["brown", "k1 to k3, p1, p2"], ["rational", "all: wide angles"]];
const DICTIONARIES = ["4X4_50", "4X4_100", "4X4_250", "5X5_50", "5X5_100", "5X5_250", "6X6_50", "6X6_100", "6X6_250"];
/** Numbers that describe the target: label, hint. */
const NUMBERS = {
  columns: ["columns", "Inner corners of a checkerboard (one less than its squares), circles, or squares of a ChArUco board, in a row"],
  rows: ["rows", "The same in a column"],
  square_mm: ["square, mm", "Side of a square; of circles: the distance between neighbours, or between rows if every second one is shifted"],
  marker_mm: ["marker, mm", "Side of a marker of the ChArUco board"],
};
const LONGEST_RESIDUAL = 40;  // screen px
const SIDES = {left: "", right: "right ", plane: "specimen "};

/** Points of the target with their residuals, enlarged; points of the other images of the camera. */
class TargetLayer {
  inImage = false;
  points = [];
  residuals = [];
  others = [];
  enlarged = 1;

  draw(context, stage) {
    context.fillStyle = `${CURVES[1]}70`;
    for (const [x, y] of this.others) {
      const at = stage.toScreen({x, y});
      context.fillRect(at.x - 1.5, at.y - 1.5, 3, 3);
    }
    this.points.forEach(([x, y], k) => this.#drawPoint(context, stage.toScreen({x, y}), this.residuals[k]));
  }

  #drawPoint(context, at, residual) {
    for (const [style, width] of [["#fffc", 4], [CURVES[0], 1.8]]) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.beginPath();
      context.arc(at.x, at.y, 4, 0, 2 * Math.PI);
      if (residual) {
        context.moveTo(at.x, at.y);
        context.lineTo(at.x + this.enlarged * residual[0], at.y + this.enlarged * residual[1]);
      }
      context.stroke();
    }
  }
}

export class CalibratePage {
  image = new ImageLayer();
  layer = new TargetLayer();
  frame = 0;
  names = [];
  sides = [];
  asked = {left: "", right: "", plane: "", pattern: "checkerboard", columns: "", rows: "", square_mm: "", marker_mm: "", dictionary: "4X4_50",
    model: "brown", file: ""};
  #found = null;  // the calibration

  /** onuse(path): takes a camera file for measurements; null if there is nothing to measure. */
  constructor(source, stage, timeBar, chooser, {onuse, onchange}) {
    Object.assign(this, {source, stage, timeBar, chooser, onuse, onchange});
    this.panel = this.#build();
    this.#fillIn();
  }

  // Project ---------------------------------------------------------------------------------------

  collect() { return {...this.asked}; }

  async restore(asked) {
    const images = ({left, right, plane}) => [left, right, plane].join("\n"), before = images(this.asked);
    Object.assign(this.asked, asked);
    if (images(this.asked) !== before) await this.#openImages();
    else this.#fillIn();
  }

  async activate() {
    $("no-image").textContent = this.frameCount === 0 ? "Choose a folder with images of the target, or one with the target on the specimen." : "";
    this.stage.layers = [this.image, this.layer];
    this.stage.setTool(null);
    this.stage.onhover = (place) => {
      $("cursor").textContent = place ? `x ${place.x.toFixed(1)}  y ${place.y.toFixed(1)} px` : "";
    };
    if (this.frameCount === 0) return this.timeBar.detach();
    this.timeBar.attach(this);
    await this.showFrame(this.frame);
  }

  // Frames ----------------------------------------------------------------------------------------

  get frameCount() { return this.names.length; }

  async showFrame(frame) {
    try {
      const image = await this.source.targetImage(frame);
      this.image.set(image);
      this.frame = frame;
      if (this.#isShown) this.stage.setImageSize(image.width * image.reduced, image.height * image.reduced);
    } catch (error) {
      say(error.message, "error");
    }
    this.#showFrameFacts();
  }

  get #isShown() { return document.body.dataset.tab === "calibrate"; }

  #nameOf(frame) { return `${SIDES[this.sides[frame]]}${this.names[frame]}`; }

  #showFrameFacts() {
    const seen = this.#found?.images[this.frame];
    this.layer.points = seen?.points ?? [];
    this.layer.residuals = seen?.residuals ?? [];
    this.layer.others = !this.showsAll.checked || !this.#found ? [] : this.#found.images.flatMap(
      ({points, residuals}, k) => (this.sides[k] === this.sides[this.frame] && residuals.length > 0 ? points : []));
    this.layer.enlarged = this.#enlargement();
    const words = !seen ? "" : seen.problem || `${seen.points.length} points, residuals ${number(seen.rms, 3)} px, drawn ${this.layer.enlarged} times as long`;
    this.frameBox.textContent = words;
    if (this.#isShown && this.frameCount > 0) this.timeBar.update(`${this.frame + 1} / ${this.frameCount}  ${this.#nameOf(this.frame)}`);
    [...this.table.querySelectorAll("tbody tr")].forEach((row, k) => row.setAttribute("aria-current", String(k === this.frame)));
    this.stage.redraw();
  }

  /** A round number of screen px per px, the same for all images. */
  #enlargement() {
    const longest = Math.max(0, ...(this.#found?.images ?? []).flatMap(({residuals}) => residuals.map(([x, y]) => Math.hypot(x, y))));
    return longest > 0 ? Math.max(1, niceBelow(LONGEST_RESIDUAL / longest)) : 1;
  }

  // Panel -----------------------------------------------------------------------------------------

  #build() {
    const button = (id, label, hint, onclick, attributes = {}) => h("button", {id, type: "button", title: hint, onclick, ...attributes}, label);
    this.inputs = {};
    const typed = (name, type, [label, hint]) => labelled(label, this.inputs[name] = h("input", {type, id: `calibrate-${name}`, min: 0, step: "any",
      spellcheck: false, onchange: (event) => this.#set(name, event.target.value.trim())}), hint);
    const chosen = (name, choices, label, hint = "") => labelled(label, this.inputs[name] = select(choices, this.asked[name],
      (value) => this.#set(name, value), {id: `calibrate-${name}`}), hint);
    const role = ([name, [label, hint, kind, title]]) => h("div", {title: hint},
      h("div", {class: "row"}, h("span", {class: "space"}, label),
        button(`calibrate-choose-${name}`, "Choose…", hint, () => this.chooser.open(title, {takes: [kind], use: (path) => this.#choose(name, path)})),
        this.removeButtons[name] = button(`calibrate-remove-${name}`, "×", "Leave these out", () => this.#choose(name, ""))),
      this.chosenNames[name] = h("p", {class: "hint chosen", id: `calibrate-${name}`}));
    this.chosenNames = {};
    this.removeButtons = {};
    this.frameBox = h("p", {class: "hint", id: "calibrate-frame"});
    this.resultBox = h("div", {id: "calibrate-result"});
    this.table = h("table", {class: "frames targets", id: "calibrate-table"});
    this.showsAll = h("input", {type: "checkbox", id: "calibrate-all", checked: true, onchange: () => this.#showFrameFacts()});
    return h("div", {},
      section("Images", true, ...Object.entries(ROLES).map(role)),
      section("Target", true,
        chosen("pattern", PATTERNS, "pattern"),
        ...Object.entries(NUMBERS).map(([name, words]) => typed(name, "number", words)),
        chosen("dictionary", DICTIONARIES.map((name) => [name, name]), "markers", "The set of markers that the ChArUco board was printed with"),
        chosen("model", MODELS, "distortion", "Parameters of the lens distortion that are estimated"),
        h("div", {class: "row"}, this.runButton = button("calibrate-run", "Calibrate", "Takes seconds", () => this.#calibrate(), {class: "primary"}))),
      section("Result", true, this.resultBox, this.frameBox,
        h("label", {class: "check"}, this.showsAll, h("span", {}, "show the points of all images: what they cover")),
        h("div", {class: "scrolls"}, this.table)),
      section("Camera file", true,
        labelled("file", this.inputs.file = h("input", {type: "text", id: "calibrate-file", spellcheck: false,
          onchange: (event) => this.#set("file", event.target.value.trim())}), "Name of the file that is written"),
        h("label", {class: "check"}, this.force = h("input", {type: "checkbox", id: "calibrate-force"}), h("span", {}, "replace an earlier file")),
        h("div", {class: "row"},
          this.saveButton = button("calibrate-save", "Save", "Writes the camera file", () => this.#save()),
          this.useButton = button("calibrate-use", "Save and use it", "Writes the camera file; measurements of this window take it",
            () => this.#save().then((path) => path && this.onuse(path)))),
        h("p", {class: "hint"}, "With it, positions are corrected for the lens and come in mm if a target lay on the specimen.")));
  }

  #fillIn() {
    for (const [name, input] of Object.entries(this.inputs)) input.value = this.asked[name] ?? "";
    for (const [name, element] of Object.entries(this.chosenNames)) {
      element.textContent = this.asked[name].split("/").at(-1);
      element.title = this.asked[name];
      this.removeButtons[name].hidden = !this.asked[name];
    }
    for (const name of ["marker_mm", "dictionary"]) this.inputs[name].closest("label").hidden = this.asked.pattern !== "charuco";
    for (const name of ["columns", "rows"]) this.inputs[name].closest("label").hidden = this.asked.pattern === "rings";
    this.inputs.file.placeholder = this.#defaultFile();
    this.#showResult();
  }

  #defaultFile() { return this.asked.right ? "stereo.json" : "camera.json"; }

  #set(name, value) {
    this.asked[name] = value;
    if (name !== "file") this.#found = null;
    this.#fillIn();
    this.onchange();
  }

  // Images ----------------------------------------------------------------------------------------

  async #choose(name, path) {
    const before = this.asked[name];
    this.asked[name] = path;
    try {
      await this.#load();
    } catch (error) {
      this.asked[name] = before;
      throw error;
    }
    await this.activate();
    this.#fillIn();
    this.onchange();
  }

  /** Throws Error, a sentence. */
  async #load() {
    const {left, right, plane} = this.asked;
    Object.assign(this, await this.source.targets({left, right, plane}), {frame: 0});
    this.#found = null;
    this.image.set(null);
  }

  async #openImages() {
    try {
      await this.#load();
      if (this.#isShown) await this.activate();
      this.#fillIn();
    } catch (error) {
      say(error.message, "error");
    }
  }

  // Calibration -----------------------------------------------------------------------------------

  async #calibrate() {
    const {pattern, columns, rows, square_mm, marker_mm, dictionary, model} = this.asked;
    this.runButton.disabled = true;
    this.#found = null;
    this.#showResult();
    try {
      say("Looking for the target, then calibrating…");
      this.#found = await this.source.calibrate({model, target: {pattern, dictionary, columns: Math.round(Number(columns)), rows: Math.round(Number(rows)),
        square_mm: Number(square_mm), marker_mm: Number(marker_mm)}});
      say("");
    } catch (error) {
      say(error.message, "error");
    }
    this.runButton.disabled = false;
    this.#showResult();
  }

  #showResult() {
    const found = this.#found, covered = found?.coverage.map((share) => `${Math.round(100 * share)} %`).join(", ");
    this.saveButton.disabled = this.useButton.disabled = !found;
    this.useButton.hidden = !this.onuse || this.asked.right !== "";
    this.resultBox.replaceChildren(...(found ? [
      ...found.warnings.map((warning) => h("p", {class: "warning"}, warning)),
      facts([["residuals, rms", `${number(found.rms, 3)} px`], ...(covered ? [["image covered", covered]] : []), ...found.facts])]
      : [h("p", {class: "hint"}, "Nothing has been calibrated yet.")]));
    this.table.replaceChildren(...(found ? [
      h("thead", {}, h("tr", {}, ["", "image", "points", "rms, px"].map((text) => h("th", {}, text)))),
      h("tbody", {}, found.images.map((image, k) => this.#row(image, k)))] : []));
    this.#showFrameFacts();
  }

  #row({points, rms, problem}, k) {
    return h("tr", {title: problem, onclick: () => this.timeBar.go(k)},
      [k + 1, this.#nameOf(k), problem ? "not used" : points.length, problem ? "" : number(rms, 3)].map((text) => h("td", {}, String(text))));
  }

  async #save() {
    try {
      const {path} = await this.source.keepCamera(this.asked.file || this.#defaultFile(), this.force.checked);
      say(`Wrote ${path}.`);
      return path;
    } catch (error) {
      say(error.message, "error");
      return null;
    }
  }
}
