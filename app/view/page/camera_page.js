// A camera: set it up while its picture is shown, take the reference, and see fields and extensometers while it is measured.

import {CURVES, automaticMap, rangeFor} from "dic/colours.js";
import {$, h, labelled, number, say, section, select} from "dic/dom.js";
import {openTest} from "dic/file_chooser.js";
import {FieldLayer, ImageLayer, LegendLayer} from "dic/layers.js";
import {Plot} from "dic/plots.js";
import {STRAIN_UNITS, available, quantity, unitOf} from "dic/quantities.js";
import {RegionEditor} from "dic/region_editor.js";
import {Result, rangeOfSample} from "dic/result.js";
import {Settings} from "dic/settings.js";
import {facts} from "dic/setup_page.js";
import {boundingBox, text} from "dic/shapes.js";

const POLL_MS = 100;
const OPENING = "Opening the camera…";
const MOST_PLOTTED = 2000;  // points of a curve
const RUNNING = ["looking", "measuring"];
const TOOLS = [
  ["select", "Select", "Move shapes and corners; Delete removes the shape"],
  ["polygon", "Polygon", "Click the corners; double click, Enter or the first corner closes it"],
  ["rectangle", "Rectangle", "Drag from corner to corner"],
  ["circle", "Circle", "Drag from the centre to the outline"],
  ["scale", "Extensometer", "Drag from end to end: the strain between both is measured"],
];
/** Settings of the camera by their name in the program: label, hint and placeholder. */
const CAMERA = {
  fps: ["frames per second", "Frames that the camera takes per second", "as it is set"],
  exposure: ["exposure, µs", "Time for which the sensor collects light", "as it is set"],
  gain: ["gain", "Amplification, in most cameras in dB. It amplifies noise, too", "as it is set"],
  region: ["part of the sensor", "x,y,width,height in px; a smaller part is measured faster", "as it is set"],
  format: ["pixel format", "For example Mono8 or Mono16", "as it is set"],
  trigger: ["trigger", "free: the camera runs by itself; software: a frame when the last one was measured; or an input, as Line0", "free"],
};
/** Options of a run that a camera has no use for. */
const NOT_LIVE = ["fps", "times", "resume", "noise-floor", "max-memory", "pictures"];
/** Causes of losses in words. */
const LOSSES = {camera: "never sent", network: "lost on the way", no_buffer: "without a buffer", measuring: "replaced by newer ones",
  recorder: "not recorded"};
const AXES = [["camera", "of the left camera"], ["plane", "of the best-fit plane"], ["cylinder", "of the best-fit cylinder"],
  ["points", "through three points"]];
const PICTURES = [["both", "left, and the right one small"], ["left", "left alone"], ["right", "right alone"]];
const DROPS = [["newest", "measure the newest frame"], ["never", "measure every frame"], ["stop", "stop at the first lost frame"]];

/** The extensometers over the image, each with its strain. */
class GaugeLayer {
  inImage = false;
  gauges = [];
  words = [];

  draw(context, stage) {
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "bottom";
    this.gauges.forEach(([a, b], k) => {
      const from = stage.toScreen(a), to = stage.toScreen(b);
      for (const [colour, width] of [["#fffc", 5], [CURVES[k % CURVES.length], 2.5]]) {
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.beginPath();
        context.moveTo(from.x, from.y);
        context.lineTo(to.x, to.y);
        context.stroke();
      }
      const label = [String(k + 1), this.words[k]].filter(Boolean).join(": ");
      context.lineWidth = 4;
      context.strokeStyle = "#fffd";
      context.fillStyle = "#111";
      context.strokeText(label, (from.x + to.x) / 2, (from.y + to.y) / 2 - 5);
      context.fillText(label, (from.x + to.x) / 2, (from.y + to.y) / 2 - 5);
    });
  }
}

/** The picture of the right camera in a corner. */
class CornerLayer {
  inImage = false;
  picture = new ImageLayer();

  draw(context, stage) {
    if (!this.picture.image) return;
    const {width, height, reduced} = this.picture.image, margin = 8;
    const scale = Math.min(0.32 * stage.width / width, 0.4 * stage.height / height) / reduced;
    const shown = {width: scale * reduced * width, height: scale * reduced * height};
    const left = margin, top = margin;  // the scale bar is below
    context.save();
    context.translate(left + scale / 2, top + scale / 2);
    context.scale(scale, scale);
    this.picture.draw(context, {view: {scale}});
    context.restore();
    context.lineWidth = 2;
    context.strokeStyle = "#fff";
    context.strokeRect(left, top, shown.width, shown.height);
    context.font = "600 12px system-ui, sans-serif";
    context.textBaseline = "top";
    context.lineWidth = 4;
    context.strokeStyle = "#fffd";
    context.fillStyle = "#111";
    context.strokeText("right camera", left + 7, top + 7);
    context.fillText("right camera", left + 7, top + 7);
  }
}

export class CameraPage {
  image = new ImageLayer();
  corner = new CornerLayer();
  field = new FieldLayer();
  legend = new LegendLayer();
  gaugeLayer = new GaugeLayer();
  camera = {camera: "fake"};
  look = {quantity: "exx", strainUnit: "%", field: true, drop: "newest", picture: "both"};
  #history = [];
  #following = null;   // a promise: the loop that follows the camera has ended
  #turn = 0;           // counts loops that follow the camera: only the last one goes on
  #shown = {image: 0, field: 0};
  #range = null;       // range of all fields since the reference

  constructor(source, options, stage, timeBar, chooser, onchange) {
    Object.assign(this, {source, stage, timeBar, chooser, onchange});
    this.editor = new RegionEditor(stage, {onchange: () => this.#changed(), onscale: () => this.#addGauge()});
    this.editor.grid.show = false;
    this.settings = new Settings(options.filter(({name}) => !NOT_LIVE.includes(name)), () => this.#changed(), "camera-option");
    this.plot = new Plot($("plot-camera"));
    this.panel = this.#build();
    this.#choose("select");
    this.#listGauges();
  }

  // Project ---------------------------------------------------------------------------------------

  collect() {
    return {camera: {...this.camera}, look: {...this.look}, gauges: this.gaugeLayer.gauges,
      settings: Object.fromEntries(this.settings.values)};
  }

  restore({camera, look, gauges, settings}) {
    this.camera = {...camera};
    Object.assign(this.look, look);
    this.gaugeLayer.gauges = gauges ?? [];
    this.settings.load(settings ?? {});
    this.editor.replace(this.settings.shapes());
    this.#fillIn();
    this.#listGauges();
  }

  activate() {
    this.#chooseLayers();
    this.stage.onhover = (place) => this.#hover(place);
    this.timeBar.detach();
    this.#drawPlot();
    this.stage.redraw();
    this.#follow();
  }

  #chooseLayers() {
    const isRight = this.#showsRight, overLeft = [this.field, this.editor, this.gaugeLayer, this.corner, this.legend];
    this.stage.layers = this.image.image ? [this.image, ...(isRight ? [] : overLeft)] : [];
    this.stage.setTool(isRight ? null : this.editor);
  }

  /** True if the picture of the right camera takes the place of the left one, over which fields and shapes lie. */
  get #showsRight() { return this.#hasRight && this.look.picture === "right"; }

  get hasPlot() { return this.gaugeLayer.gauges.length > 0; }

  // Panel -----------------------------------------------------------------------------------------

  #build() {
    const button = (id, label, hint, onclick, attributes = {}) => h("button", {id, type: "button", title: hint, onclick, ...attributes}, label);
    const field = ([name, [label, hint, placeholder]]) => labelled(label, this.inputs[name] = h("input", {type: "text", id: `camera-${name}`,
      placeholder, spellcheck: false, onchange: (event) => this.#setCamera(name, event.target.value.trim())}), hint);
    const typed = (name, label, hint, placeholder) => field([name, [label, hint, placeholder]]);
    this.inputs = {};
    this.toolButtons = TOOLS.map(([mode, label, hint]) => button(`camera-tool-${mode}`, label, hint, () => this.#choose(mode)));
    this.found = h("datalist", {id: "camera-found"});
    this.listBox = h("ul", {class: "shapes", id: "camera-list"});
    this.settingsBox = h("div", {id: "camera-settings"});
    this.gaugeList = h("ol", {class: "shapes", id: "camera-gauges"});
    this.stateBox = h("div", {id: "camera-state"});
    this.notes = h("div", {id: "camera-notes"});
    const box = h("div", {},
      section("Camera", true,
        labelled("camera", this.inputs.camera = h("input", {type: "text", id: "camera-name", spellcheck: false,
          onchange: (event) => this.#setCamera("camera", event.target.value.trim())}),
        "Name, serial number or address of a GenICam camera; webcam:0; or fake, moving speckle without hardware"),
        h("div", {class: "row"}, button("camera-find", "Look for cameras", "Takes about a second", () => this.#find())),
        this.listBox,
        ...Object.entries(CAMERA).map(field),
        h("div", {class: "row"},
          button("camera-look", "Show its picture", "Opens the camera with these settings", () => this.#look(), {class: "primary"}),
          button("camera-use-region", "Part as drawn", "Takes the box around what is drawn as the part of the sensor", () => this.#useRegion())),
        this.settingsBox),
      this.pairSection = section("Two cameras", false,
        typed("right-camera", "right camera", "The camera above is then the left one of two that share a trigger; both get the same settings", "one camera"),
        typed("calibration", "calibration", "File of both cameras: of the page Calibrate or of another program", "none"),
        h("div", {class: "row"}, button("camera-choose-calibration", "Choose the calibration…", "Lists the folders that the program may read",
          () => this.chooser.open("Choose the calibration of both cameras", {takes: ["calibration"], use: (path) => {
            this.#setCamera("calibration", path);
            this.#fillIn();
          }}))),
        labelled("axes", this.axesSelect = select(AXES, "camera", (axes) => this.#setCamera("axes", axes === "camera" ? "" : axes), {id: "camera-axes"}),
          "Axes of positions and displacements in space"),
        typed("axes-points", "three points", "For axes through three points: the origin, a point on x, a point in the plane of x and y, px of the left picture",
          "x,y x,y x,y"),
        labelled("picture", this.pictureSelect = select(PICTURES, this.look.picture, (picture) => {
          this.look.picture = picture;
          this.#shown.image = 0;
          this.onchange();
          this.#follow();
        }, {id: "camera-picture"}), "Field and extensometers lie over the left picture")),
      section("Where to measure", true,
        h("div", {class: "tools", role: "toolbar"}, ...this.toolButtons),
        h("label", {class: "check"}, this.fieldBox = h("input", {type: "checkbox", id: "camera-field",
          onchange: (event) => { this.look.field = event.target.checked; this.#changed(); }}),
        h("span", {}, "measure the whole field, not the ends of extensometers alone")),
        this.gaugeList),
      section("Settings", false, this.settings.form),
      section("Measure", true,
        labelled("frames too fast", this.dropSelect = select(DROPS, this.look.drop, (drop) => { this.look.drop = drop; this.onchange(); }, {id: "camera-drop"}),
          "What happens when frames come faster than they are measured; every loss is counted"),
        labelled("record to", this.inputs.record = h("input", {type: "text", id: "camera-record", placeholder: "no recording", spellcheck: false,
          onchange: (event) => this.#setCamera("record", event.target.value.trim())}), "Folder for all frames that arrive"),
        h("label", {class: "check"}, this.keep = h("input", {type: "checkbox", id: "camera-keep"}), h("span", {}, "write the result to its folder")),
        h("label", {class: "check"}, this.force = h("input", {type: "checkbox", id: "camera-force"}), h("span", {}, "replace an earlier result")),
        h("div", {class: "row"},
          this.measureButton = button("camera-measure", "Take the reference", "The next frame becomes the reference; those after it are measured",
            () => this.#measure(), {class: "primary"}),
          this.stopButton = button("camera-stop", "Stop", "Ends the measurement, or closes the camera", () => this.#stop(), {disabled: true})),
        this.notes),
      section("Show", true,
        labelled("quantity", this.quantitySelect = select([[this.look.quantity, this.look.quantity]], this.look.quantity,
          (id) => { this.look.quantity = id; this.#range = null; this.#shown.field = 0; this.onchange(); this.#follow(); }, {id: "camera-quantity"}),
        "The field over the image. Its colours keep the range of all frames since the reference"),
        labelled("strain in", this.unitSelect = select(Object.keys(STRAIN_UNITS).map((unit) => [unit, unit === "1" ? "1 (no unit)" : unit]), this.look.strainUnit,
          (unit) => { this.look.strainUnit = unit; this.#shown.field = 0; this.onchange(); this.#drawPlot(); this.#follow(); }, {id: "camera-unit"})),
        this.stateBox));
    this.#fillIn();
    return box;
  }

  #fillIn() {
    for (const [name, input] of Object.entries(this.inputs)) input.value = this.camera[name] ?? "";
    this.axesSelect.value = this.camera.axes ?? "camera";
    this.pictureSelect.value = this.look.picture;
    if (this.camera["right-camera"]) this.pairSection.open = true;
    this.fieldBox.checked = this.look.field;
    this.dropSelect.value = this.look.drop;
    this.unitSelect.value = this.look.strainUnit;
  }

  #setCamera(name, value) {
    if (value) this.camera[name] = value;
    else delete this.camera[name];
    this.onchange();
  }

  #choose(mode) {
    this.editor.setMode(mode);
    this.toolButtons.forEach((b, k) => b.setAttribute("aria-pressed", String(TOOLS[k][0] === mode)));
  }

  #changed() {
    if (!this.panel) return;
    this.settings.setShapes(this.editor.shapes);
    this.onchange();
    this.stage.redraw();
  }

  #hover(place) {
    const value = place && this.values && !this.#showsRight ? this.result.at(this.values, place.x, place.y) : NaN;
    const unit = this.#unit();
    $("cursor").textContent = this.image.describe(place) +
      (Number.isNaN(value) ? "" : `   ${this.look.quantity} ${number(value * unit.factor, 4)} ${unit.name}`);
    this.stage.redraw();
  }

  #unit() {
    return unitOf(quantity(this.look.quantity)?.kind ?? "none", this.result?.meta.length_unit ?? "px", this.look.strainUnit);
  }

  // Extensometers ---------------------------------------------------------------------------------

  #addGauge() {
    this.gaugeLayer.gauges = [...this.gaugeLayer.gauges, this.editor.scaleLine];
    this.editor.scaleLine = null;
    this.#gaugesChanged();
  }

  #gaugesChanged() {
    this.gaugeLayer.words = [];
    this.#listGauges();
    this.onchange();
    this.stage.redraw();
  }

  #listGauges() {
    const {gauges} = this.gaugeLayer;
    $("plots").hidden = document.body.dataset.tab !== "camera" || !this.hasPlot;
    this.gaugeList.replaceChildren(...gauges.map((gauge, k) => {
      const input = h("input", {type: "text", value: text(gauge), "aria-label": `Ends of extensometer ${k + 1}`, onchange: () => {
        const [a, b] = input.value.split(/[\s;]+/).map((place) => place.split(",").map(Number));
        if (![a, b].every((place) => place?.length === 2 && place.every(Number.isFinite))) return say("Ends are x,y x,y in px.", "error");
        this.gaugeLayer.gauges = gauges.with(k, [{x: a[0], y: a[1]}, {x: b[0], y: b[1]}]);
        this.#gaugesChanged();
      }});
      const swatch = h("span", {class: "swatch"});
      swatch.style.background = CURVES[k % CURVES.length];
      return h("li", {}, swatch, input, h("button", {type: "button", title: "Remove", "aria-label": `Remove extensometer ${k + 1}`,
        onclick: () => { this.gaugeLayer.gauges = gauges.toSpliced(k, 1); this.#gaugesChanged(); }}, "×"));
    }));
    if (gauges.length === 0)
      this.gaugeList.replaceChildren(h("li", {class: "hint"}, "No extensometer. Draw a line with the tool Extensometer to have one."));
  }

  // Actions ---------------------------------------------------------------------------------------

  /** Does what `act` asks the program for, and says why it failed. */
  async #try(act) {
    try {
      say("");
      await act();
    } catch (error) {
      say(error.message, "error");
    }
  }

  #find() {
    return this.#try(async () => {
      say("Looking for cameras…");
      const {cameras, problems} = await this.source.cameras();
      this.listBox.replaceChildren(...cameras.map(({id, protocol, vendor, model, address}) => h("li", {},
        h("button", {type: "button", "data-camera": id, onclick: () => {
          this.#setCamera("camera", id);
          this.#fillIn();
        }}, id), this.pairSection.open ? h("button", {type: "button", "data-right-camera": id, title: "The right one of two cameras", onclick: () => {
          this.#setCamera("right-camera", id);
          this.#fillIn();
        }}, "right") : null, h("span", {class: "hint"}, [protocol, vendor, model, address].filter(Boolean).join(" ")))));
      say(problems.join(" ") || (cameras.length > 0 ? "" : "No camera was found."), problems.length > 0 ? "error" : "info");
    });
  }

  #begin() {
    this.#history = [];
    this.#range = null;
    this.#shown = {image: 0, field: 0};
    this.gaugeLayer.words = [];
    this.stateBox.replaceChildren();
    this.#showField(null);
  }

  /** Does what replaces the camera's images: nothing of those before is asked for meanwhile. */
  async #restart(act) {
    for (const button of [this.measureButton, this.stopButton]) button.disabled = true;
    ++this.#turn;
    await this.#following;
    await this.#try(async () => {
      await act();
      this.#begin();
    });
    this.measureButton.disabled = false;
    this.#follow();
  }

  #look() {
    return this.#restart(() => this.source.cameraLook({camera: this.#cameraOnly()}));
  }

  #cameraOnly() {
    const {record: _, ...camera} = this.camera;
    return camera;
  }

  #measure() {
    return this.#restart(() => {
      const extensometer = this.gaugeLayer.gauges.map((ends) => ends.flatMap(({x, y}) => [x, y]).join(","));
      return this.source.cameraMeasure({
        camera: {...this.camera, extensometer, drop: this.look.drop, "only-extensometers": String(!this.look.field)},
        toml: this.settings.toml(), keep: this.keep.checked, force: this.force.checked});
    });
  }

  #stop() { return this.#try(() => this.source.cameraStop()); }

  /** The box around what is drawn becomes the part of the sensor, in which nothing is drawn any more. */
  #useRegion() {
    if (this.editor.shapes.length === 0) return say("Draw a rectangle around the part first.", "error");
    const box = boundingBox(this.editor.shapes, this.stage.image), even = (value) => 2 * Math.floor(value / 2);
    const [left, top] = (this.settingsNow?.find(({name}) => name === "region")?.actual ?? "0,0").split(",").map(Number);
    this.#setCamera("region", [left + even(box.x0), top + even(box.y0), even(box.x1 - box.x0 + 1), even(box.y1 - box.y0 + 1)].join(","));
    this.editor.replace([]);
    this.#fillIn();
    return this.#look();
  }

  // Following -------------------------------------------------------------------------------------

  /** Shows what the camera does until it ends, or another page is shown. */
  #follow() {
    this.#following = this.#show(++this.#turn);
  }

  async #show(turn) {
    const isCurrent = () => turn === this.#turn && document.body.dataset.tab === "camera";
    try {
      for (let isRunning = true; isRunning && isCurrent();) {
        const now = await this.source.cameraProgress((this.#history.at(-1)?.[0] ?? 0) + 1);
        if (!isCurrent()) return;
        this.#showProgress(now);
        if (now.image > 0 && now.image !== this.#shown.image) await this.#showImages(now.image, now.has_right);
        if (now.field !== this.#shown.field && now.field > 0) await this.#loadField(now.field);
        isRunning = RUNNING.includes(now.state);
        await new Promise((resume) => setTimeout(resume, POLL_MS));
      }
    } catch (error) {
      if (turn === this.#turn) say(error.message, "error");
    }
  }

  #showProgress(now) {
    const wasRunning = RUNNING.includes(this.state), isMeasuring = now.state === "measuring";
    this.state = now.state;
    this.settingsNow = now.settings;
    this.panel.dataset.state = now.state;
    this.measureButton.textContent = isMeasuring ? "Take a new reference" : "Take the reference";
    this.stopButton.disabled = !RUNNING.includes(now.state);
    $("camera-look").disabled = isMeasuring;
    this.settingsBox.replaceChildren(now.settings.length > 0 ? facts(now.settings.map(({name, asked, actual, is_kept: isKept}) =>
      [name, isKept ? actual : `${actual}, not ${asked}`])) : "");
    const {line, drops} = now, lost = Object.entries(drops).filter(([, count]) => count > 0).map(([name, count]) => `${count} ${LOSSES[name]}`);
    const good = line?.counts?.ok ?? 0, points = Object.values(line?.counts ?? {}).reduce((sum, count) => sum + count, 0) - (line?.counts?.masked ?? 0);
    this.stateBox.replaceChildren(facts([["frame", now.results], ["lost", lost.join(", ") || "none"],
      ...(line?.latency > 0 ? [["time to the result", `${number(1e3 * line.latency, 3)} ms`]] : []),
      ...(points > 0 ? [["points measured", `${good} of ${points}`]] : []),
      ...(line && "mean_Z" in line ? [["mean Z", `${number(line.mean_Z, 5)} mm`], ["mean W", `${number(line.mean_W, 4)} mm`],
        ["from the epipolar lines", `${number(line.epipolar_median, 2)} px`]] : [])]));
    this.notes.replaceChildren(...now.notes.map((note) => h("p", {class: "hint"}, note)),
      now.output ? h("button", {type: "button", id: "camera-open", onclick: () => this.#try(() => openTest(this.source, now.output))}, "Open the result") : "");
    if (now.history.length > 0) {
      this.#history.push(...now.history);
      this.#showGauges(line);
    }
    if (now.state === "failed" && (wasRunning || !this.#saidFailure)) say(now.error, "error");
    this.#saidFailure = now.state === "failed";
    if (wasRunning && now.state === "ended") say(now.output ? `Done: ${now.output}` : "The camera is closed.");
    const isOpening = RUNNING.includes(now.state) && now.settings.length === 0;
    if (isOpening) say(OPENING);
    else if ($("message").textContent === OPENING) say("");
    if (line?.error) say(line.error, "error");
  }

  #saidFailure = false;

  #hasRight = false;

  async #showImages(count, hasRight) {
    const {picture} = this.look, wantsRight = hasRight && picture !== "left";
    const [left, right] = await Promise.all([wantsRight && picture === "right" ? null : this.source.cameraImage(),
      wantsRight ? this.source.rightCameraImage() : null]);
    const image = left ?? right;
    this.#shown.image = count;
    this.#hasRight = hasRight;
    this.image.set(image);
    this.corner.picture.set(left && right);
    if (document.body.dataset.tab === "camera") this.#chooseLayers();
    this.stage.setImageSize(image.width * image.reduced, image.height * image.reduced);
    this.stage.redraw();
  }

  async #loadField(count) {
    const meta = await this.source.cameraField();
    const result = new Result(meta, (name) => this.source.loadCameraField(name));
    this.#offerQuantities(available(meta.arrays));
    const values = await result.values(this.look.quantity, 0);
    if (values.length !== meta.grid.nx * meta.grid.ny) return;  // another measurement has begun meanwhile
    this.#shown.field = count;
    this.#showField(result, values);
  }

  /** Lists quantities anew only where others are there: a list that changes with every frame closes under the mouse. */
  #offerQuantities(quantities) {
    const offered = [...this.quantitySelect.options].map((option) => option.value);
    if (quantities.length === offered.length && quantities.every((q, k) => q.id === offered[k])) return;
    this.quantitySelect.replaceChildren(...quantities.map((q) => h("option", {value: q.id, selected: q.id === this.look.quantity}, q.label)));
  }

  #showField(result, values = null) {
    Object.assign(this, {result, values});
    if (!result) {
      this.field.set(null, null, null);
      this.legend.set(null);
      return this.stage.redraw();
    }
    const q = quantity(this.look.quantity), unit = this.#unit(), {meta, grid} = result;
    const now = q.kind === "status" ? {min: 0, max: 1} : rangeOfSample(values.filter((value) => !Number.isNaN(value)));
    this.#range = this.#range ? {min: Math.min(now.min, this.#range.min), max: Math.max(now.max, this.#range.max)} : now;
    const map = automaticMap(this.#range), range = rangeFor(map, this.#range);
    const names = q.kind === "status" ? meta.status_names : null;
    this.field.set(grid, values, {range, map, names});
    this.legend.set({title: `${q.id}${unit.name ? ` [${unit.name}]` : ""}`, map, names,
      range: {min: range.min * unit.factor, max: range.max * unit.factor},
      scale: meta.scale_mm_per_px > 0 ? {mmPerPx: meta.scale_mm_per_px, unit: "mm"} : undefined});
    this.stage.redraw();
  }

  #showGauges(line) {
    const factor = STRAIN_UNITS[this.look.strainUnit], name = this.look.strainUnit === "1" ? "" : ` ${this.look.strainUnit}`;
    this.gaugeLayer.words = (line?.extensometers ?? []).map(({strain, sigma_strain: sigma, problem}) =>
      (problem ? "not measured" : `${number(strain * factor, 4)}${name} ± ${number(sigma * factor, 2)}`));
    this.#drawPlot();
    this.stage.redraw();
  }

  #drawPlot() {
    const factor = STRAIN_UNITS[this.look.strainUnit], every = Math.ceil(this.#history.length / MOST_PLOTTED) || 1;
    const shown = this.#history.filter((_, k) => k % every === 0);
    const count = Math.max(0, ...shown.slice(-1).map((entry) => entry.length - 2));
    const curves = Array.from({length: count}, (_, k) => ({label: `extensometer ${k + 1}`, colour: CURVES[k % CURVES.length],
      points: shown.map((entry) => ({x: entry[1], y: (entry[k + 2] ?? NaN) * factor}))}));
    const unit = this.look.strainUnit === "1" ? "" : ` [${this.look.strainUnit}]`;
    this.plot.show(curves, {x: "time [s]", y: `strain${unit}`});
  }

  /** The curves as a table: [header, rows]. */
  table() {
    const count = Math.max(0, ...this.#history.slice(-1).map((entry) => entry.length - 2));
    return [["frame", "time [s]", ...Array.from({length: count}, (_, k) => `extensometer ${k + 1} strain`)],
      this.#history.map((entry) => entry.map((value) => value ?? NaN))];
  }
}
