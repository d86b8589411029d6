// The page after measuring: fields over the image, time, probes.

import {MAPS, automaticMap, rangeFor} from "dic/colours.js";
import {$, csv, download, h, labelled, number, openText, say, section, select} from "dic/dom.js";
import {drawHistogram} from "dic/histogram.js";
import {ContourLayer, FieldLayer, ImageLayer, LegendLayer, VectorLayer} from "dic/layers.js";
import {film} from "dic/pictures.js";
import {Plot} from "dic/plots.js";
import {PROBE_KINDS, Probes, corners} from "dic/probes.js";
import {Result, rangeOfSample} from "dic/result.js";
import {stereoHistory, stereoProfile} from "dic/stereo_probes.js";
import {MOTIONS, PLACES, SurfaceLayer} from "dic/surface.js";
import {STRAINS, STRAIN_UNITS, available, ofProbe, quantity, unitOf} from "dic/quantities.js";
import {facts} from "dic/setup_page.js";
import {onTheme} from "dic/theme.js";
import {ticks} from "dic/ticks.js";

const CURRENT = "current", REFERENCE = "reference";
const STRAIN_MEASURES = ["green-lagrange", "engineering", "hencky", "almansi"];
const INVERSE_STEPS = 6;  // of the fixed-point iteration from a moved place back to the reference

/** Differences of values over time, by the frames before and after. */
function rates(values, times) {
  return values.map((_, k) => {
    const from = Math.max(k - 1, 0), to = Math.min(k + 1, values.length - 1);
    return (values[to] - values[from]) / (times[to] - times[from]);
  });
}

export class ResultsPage {
  image = new ImageLayer();
  field = new FieldLayer();
  otherField = new FieldLayer();
  contours = new ContourLayer();
  vectors = new VectorLayer();
  legend = new LegendLayer();
  profiles = []; // profiles of the lines, as drawn
  profileTurn = 0;
  look = {quantity: "u", map: "auto", range: "all", min: 0, max: 1, strainUnit: "1", contourCount: 8, background: REFERENCE,
    where: REFERENCE, hideOutliers: false, opacity: 0.75, smooth: true, contours: false, vectors: "none", vectorScale: 0, rate: false,
    compare: "none", view: "image", motion: 1};
  frame = 0;
  live = false;
  forces = null;   // a table of loads: see #changeForces
  #forcesRead = null;  // a promise: the table has been read
  #forceTurns = 0;
  #shown = 0;      // counts requests, so that a slow one does not replace a later one
  #histories = 0;

  other = null;  // a second result to compare with
  /** onchange(): the user has changed what a project keeps. */
  constructor(source, stage, timeBar, onchange) {
    Object.assign(this, {source, stage, timeBar, onchange});
    this.probes = new Probes(stage, () => this.#probesChanged());
    this.probes.onplaced = () => say("");
    this.surface = new SurfaceLayer(stage);
    this.panel = h("div", {});
    this.plotBox = $("plots");
    this.historyPlot = new Plot($("plot-history"), (index) => this.timeBar.go(index));
    this.profilePlot = new Plot($("plot-profile"));
    this.stressPlot = new Plot($("plot-stress"), (index) => this.timeBar.go(index));
    $("save-history").addEventListener("click", () => this.#saveHistory());
    $("save-profile").addEventListener("click", () => this.#saveProfile());
    $("save-stress").addEventListener("click", () => this.#saveStress());
    onTheme(() => { this.stage.redraw(); this.#drawHistogram(); });
    this.histogramSize = new ResizeObserver(() => this.#drawHistogram());
  }

  /** A result; live: that of a run under way, with one frame. frame: the shown one, the last if it is not given. */
  async open(result, live = false, frame = result.frames.length - 1) {
    const first = !this.result || this.result.meta.grid.nx !== result.meta.grid.nx;
    this.result = result;
    this.live = live;
    this.frame = live ? 0 : Math.min(Math.max(0, frame), Math.max(0, result.frames.length - 1));
    this.stage.setImageSize(result.meta.image.width, result.meta.image.height);
    if (live) this.other = null;
    if (first && this.isStereo && this.look.quantity === "u") this.look.quantity = "W";
    if (first || !live) this.#build();
    this.#chooseLayers();
    await this.refresh();
    if (live) return;
    this.#probesChanged();
    await this.#changeForces(this.forces);
  }

  // Second result ---------------------------------------------------------------------------------

  /** choose(use): lets the user choose the path of a result. */
  #compareSection() {
    if (!this.choose || this.live) return null;
    const {other, look} = this;
    return section("Second result", other !== null,
      h("p", {class: "hint"}, other ? `${other.meta.title}, ${other.frames.length} frames; frames of the same number are compared.`
        : "Another result of the same view, beside this one or subtracted from it."),
      h("div", {class: "row"}, h("button", {type: "button", id: "choose-other", onclick: () => this.choose((path) => this.#openOther(path))},
        other ? "Choose another…" : "Choose a result…")),
      other && labelled("show", select([["beside", "both: this left, that right"], ["difference", "this minus that"], ["none", "this alone"]],
        look.compare, (compare) => { look.compare = compare; this.onchange(); this.refresh(); }, {id: "compare"}),
      "Beside: on both sides of the middle of the drawing, in the same colours"));
  }

  async #openOther(path) {
    const meta = await this.source.openOther(path);
    if (meta.length_unit !== this.result.meta.length_unit)
      throw new Error(`That result is in ${meta.length_unit}, this one in ${this.result.meta.length_unit}: they cannot be compared.`);
    this.other = new Result(meta, (name, frame) => this.source.loadOther(name, frame));
    if (this.look.compare === "none") this.look.compare = "difference";
    this.#build();
    await this.refresh();
  }

  get #compared() { return this.other ? this.look.compare : "none"; }

  // Project ---------------------------------------------------------------------------------------

  collect() {
    return {look: {...this.look}, probes: this.probes.plain(), forces: this.forces, strain: this.#ownStrain()};
  }

  /** The strain that was chosen here; null where it is that of the measurement. */
  #ownStrain() {
    const {window, measure, stored} = this.result?.meta.strain ?? {};
    return stored && (window !== stored.window || measure !== stored.measure) ? {window, measure} : null;
  }

  async restore({look, probes, forces, strain}) {
    Object.assign(this.look, look);
    this.forces = forces ?? null;
    this.probes.restore(probes ?? []);
    if (!this.result) return;
    await this.#changeForces(this.forces);
    const now = this.result.meta.strain, wanted = strain ?? now?.stored;
    if (now && (wanted.window !== now.window || wanted.measure !== now.measure))
      return this.onstrain(await this.source.strain(wanted.window, wanted.measure));
    this.#build();
    await this.refresh();
  }

  // Strain ----------------------------------------------------------------------------------------

  #strainSection() {
    const {strain, length_unit: unit} = this.result.meta;
    // The strain of a surface is computed with the measurement alone.
    if (!strain || this.live || this.isStereo || !available(this.result.meta.arrays).some((q) => q.kind === "strain")) return null;
    const window = h("input", {type: "number", id: "result-strain-window", min: 3, max: 127, step: 2, value: strain.window,
      onchange: () => this.#changeStrain(Number(window.value), strain.measure)});
    const isOwn = this.#ownStrain() !== null, gauge = (strain.window - 1) * this.result.grid.step + strain.subset;
    return section("Strain", true,
      labelled("strain window", window, "Points along the side of the square that a strain is fitted to: odd. More: less noise, less detail"),
      labelled("measure", select(STRAIN_MEASURES.map((name) => [name, name]), strain.measure,
        (measure) => this.#changeStrain(strain.window, measure), {id: "result-strain-measure"}), "What strain means: small strains are alike in all of them"),
      h("p", {class: "hint", id: "result-gauge"}, `Gauge length: ${gauge} px${unit === "mm" ? `, ${number(gauge * this.result.scale)} mm` : ""}` +
        (isOwn ? `. In the files: window ${strain.stored.window}, ${strain.stored.measure}.` : "")),
      isOwn ? h("div", {class: "row"}, h("button", {type: "button", id: "keep-strain", onclick: () => this.#askStrain(() => this.source.keepStrain())},
        "Put it into the result")) : null);
  }

  #changeStrain(window, measure) { return this.#askStrain(() => this.source.strain(window, measure)); }

  async #askStrain(ask) {
    try {
      say("Computing the strain…");
      await this.onstrain(await ask());
      say("");
      this.onchange();
    } catch (error) {
      say(error.message, "error");
      this.#build();
      this.refresh();
    }
  }

  /** More frames of the result. Whoever looks at the last one sees the new last one. */
  async grow(frames) {
    const wasLast = this.frame === this.result.frames.length - 1;
    this.result.grow(frames);
    if (wasLast) this.frame = this.result.frames.length - 1;
    await this.refresh();
    await this.#changeForces(this.forces);
    for (const probe of this.probes.all) probe.asked = null;
    await this.#probesChanged();
  }

  async openImage() {
    try {
      this.image.set(await this.source.image("reference"));
    } catch {
      this.image.set(null);  // a result whose images are elsewhere
    }
    this.stage.redraw();
  }

  activate() {
    this.#chooseLayers();
    this.stage.onhover = (place) => this.#hover(place);
    this.timeBar.attach(this);
    if (this.result) this.#nameFrame();
    this.stage.redraw();
  }

  /** True for a result of two cameras. */
  get isStereo() { return [...PLACES, ...MOTIONS].every((name) => this.result?.meta.arrays.includes(name)); }
  get #showsSurface() { return this.isStereo && this.look.view === "surface"; }

  #chooseLayers() {
    if (document.body.dataset.tab !== "results") return;
    this.stage.layers = this.#showsSurface ? [this.surface, this.legend]
      : [this.image, this.field, this.otherField, this.contours, this.vectors, this.probes, this.legend];
    this.stage.setTool(this.#showsSurface ? this.surface : this.probes);
  }

  // Panel -----------------------------------------------------------------------------------------

  #surfaceControls() {
    if (!this.isStereo) return [];
    const {look} = this;
    return [
      labelled("view", select([["image", "over the left image"], ["surface", "surface in 3-D"]], look.view, (view) => {
        look.view = view;
        this.onchange();
        this.#chooseLayers();
        return this.refresh();
      }, {id: "view-mode"}), "The surface is turned by dragging, moved with Shift, and enlarged with the wheel"),
      labelled("motion", select([["0", "none"], ["1", "1 ×"], ["10", "10 ×"], ["100", "100 ×"]], String(look.motion), (factor) => {
        look.motion = Number(factor);
        this.onchange();
        return this.refresh();
      }, {id: "motion"}), "How much larger than U, V, W the surface moves; none: its shape in the reference"),
    ];
  }

  #build() {
    const {look} = this;
    const set = (name) => (value) => { look[name] = value; this.onchange(); return this.refresh(); };
    const box = (id, label, checked, change) => h("label", {class: "check"},
      h("input", {type: "checkbox", id, checked, onchange: (event) => change(event.target.checked)}), h("span", {}, label));
    const limit = (name) => h("input", {type: "text", id: `range-${name}`, class: "short", "aria-label": `${name}imum`,
      value: look.range === "fixed" ? number(look[name], 4) : "", onchange: (event) => this.#limit(name, event.target.value.trim())});
    const quantities = available(this.result.meta.arrays);
    if (!quantities.some((q) => q.id === look.quantity)) look.quantity = quantities[0]?.id ?? "u";
    this.rangeSelect = select([["all", "one for all frames"], ["frame", "each frame its own"], ["fixed", "fixed"]], look.range,
      set("range"), {id: "range-mode"});
    this.frameFacts = h("div", {id: "frame-facts"});
    this.probeList = h("ol", {class: "shapes", id: "probes"});
    this.panel.replaceChildren(
      section("Show", true,
        ...this.#surfaceControls(),
        labelled("quantity", select(quantities.map((q) => [q.id, q.label]), look.quantity, (id) => {
          look.quantity = id;
          if (look.range === "fixed") look.range = "all";
          this.#sync();
          this.refresh();
          this.#probesChanged();
        }, {id: "quantity"}), "The field over the image, and what the probes draw over time"),
        labelled("opacity", h("input", {type: "range", id: "opacity", min: 0, max: 1, step: 0.05, value: look.opacity,
          oninput: (event) => { this.field.opacity = Number(event.target.value); this.stage.redraw(); },
          onchange: (event) => set("opacity")(Number(event.target.value))}), "How much of the image the colours cover"),
        labelled("colours", select([["auto", "automatic"], ...MAPS.map((map) => [map, map])], look.map, set("map"), {id: "map"}),
          "Automatic: blue and red around zero, viridis for values on one side of it"),
        labelled("range", this.rangeSelect, "Which values the ends of the colours stand for"),
        h("div", {class: "row"}, limit("min"), h("span", {}, "to"), limit("max")),
        labelled("strain in", select(Object.keys(STRAIN_UNITS).map((unit) => [unit, unit === "1" ? "1 (no unit)" : unit]),
          look.strainUnit, (unit) => { this.#convertRange(unit); set("strainUnit")(unit); this.#probesChanged(); }, {id: "strain-unit"}),
          "Unit of strains, in the colours, the curves and the saved tables"),
        labelled("image", select([[REFERENCE, "reference"], ...(this.result.meta.has_images ? [[CURRENT, "current frame"]] : [])],
          look.background, set("background"), {id: "background"}), "The picture under the colours"),
        labelled("shape", select([[REFERENCE, "undeformed"], [CURRENT, "deformed"]], look.where, set("where"), {id: "where"}),
          "Undeformed: at the places of the reference. Deformed: where the material is in this frame, probes too"),
        box("smooth", "smooth colours", look.smooth, set("smooth")),
        box("outliers", "hide outliers", look.hideOutliers, set("hideOutliers"))),
      ...[this.#strainSection()].filter(Boolean),
      ...[this.#compareSection()].filter(Boolean),
      section("Lines and arrows", false,
        box("contours", "contour lines", look.contours, set("contours")),
        labelled("contour levels", h("input", {type: "number", id: "contour-count", min: 1, max: 30, value: look.contourCount,
          onchange: (event) => set("contourCount")(Math.min(30, Math.max(1, Number(event.target.value))))}),
          "About how many; their values are round numbers"),
        labelled("vectors", select([["none", "none"], ["displacement", "displacement"], ["principal", "principal strains"]],
          look.vectors, set("vectors"), {id: "vectors"})),
        labelled("scale", select([["0", "auto"], ["1", "1 ×"], ["10", "10 ×"], ["100", "100 ×"], ["1000", "1000 ×"]],
          String(look.vectorScale), (factor) => set("vectorScale")(Number(factor)), {id: "vector-scale"}),
          "How much longer than the displacement the arrows are; auto: the longest has 40 pixels of the screen")),
      section("Probes", true,
        h("div", {class: "tools", role: "toolbar"}, Object.entries(PROBE_KINDS).map(([kind, {label}]) =>
          h("button", {type: "button", id: `probe-${kind}`, onclick: () => {
            this.probes.place(kind);
            say(kind === "area" ? "Click the corners; double click closes the area." :
              kind === "point" ? "Click the place." : "Drag from end to end.");
          }}, label))),
        this.probeList,
        box("rate", "curves as rates of change", look.rate, (on) => { look.rate = on; this.onchange(); this.#drawPlots(); })),
      ...this.#forceSection(),
      section("This frame", true, this.frameFacts,
        (this.histogram = h("canvas", {id: "histogram", role: "img", "aria-label": "Histogram of the values of this frame"}))),
      h("div", {class: "row end"}, h("button", {type: "button", id: "save-picture", onclick: () => this.#savePicture()},
        "Save picture"),
      this.frameCount > 1 ? h("button", {type: "button", id: "save-video", title: "What is drawn, frame by frame, at the speed beside the slider",
        onclick: () => this.#saveVideo()}, "Save video") : null));
    this.histogramSize.disconnect();
    this.histogramSize.observe(this.histogram);
    this.#listProbes();
    this.#buildForces();
  }

  /** An end of the range as typed; an empty one leaves the range to the values. */
  #limit(name, text) {
    const {look} = this, other = name === "min" ? "max" : "min", value = Number(text.replace(",", "."));
    if (!Number.isFinite(value)) return say(`The range cannot end at "${text}": it has to be a number.`, "error");
    if (text !== "") {
      if (look.range !== "fixed") look[other] = Number($(`range-${other}`).value);
      look[name] = value;
    }
    look.range = text === "" ? "all" : "fixed";
    this.#sync();
    this.onchange();
    this.refresh();
  }

  /** A fixed range keeps its meaning in another unit of strain. */
  #convertRange(unit) {
    const {look} = this;
    if (look.range !== "fixed" || quantity(look.quantity).kind !== "strain") return;
    const factor = STRAIN_UNITS[unit] / STRAIN_UNITS[look.strainUnit];
    for (const name of ["min", "max"]) {
      look[name] = Number((look[name] * factor).toPrecision(12));
      $(`range-${name}`).value = number(look[name], 4);
    }
  }

  #sync() {
    this.rangeSelect.value = this.look.range;
  }

  // Field -----------------------------------------------------------------------------------------

  get frameCount() { return this.live ? 1 : this.result?.frames.length ?? 0; }

  showFrame(frame) {
    if (this.live || !this.result) return;
    this.frame = frame;
    return this.refresh();
  }

  unit(kind = quantity(this.look.quantity).kind) {
    return unitOf(kind, this.result.meta.length_unit, this.look.strainUnit);
  }

  async refresh() {
    const {result, look, frame} = this;
    const request = ++this.#shown;
    Object.assign(this.field, {opacity: look.opacity, smooth: look.smooth});
    Object.assign(this.vectors, {kind: look.vectors, factor: look.vectorScale});
    this.contours.enabled = look.contours;
    if (!result || result.frames.length === 0) return this.#showNothing();
    const q = quantity(look.quantity);
    try {
      const isDifference = this.#compared === "difference" && q.kind !== "status";
      let values = isDifference ? await result.difference(this.other, q.id, frame) : await result.values(q.id, frame);
      const beside = this.#compared === "beside" ? await this.other.values(q.id, Math.min(frame, this.other.frames.length - 1)) : null;
      const range = q.kind === "status" ? {min: 0, max: 1}
        : isDifference && look.range !== "fixed" ? rangeOfSample(values.filter((value) => !Number.isNaN(value))) : await this.#range(q, frame);
      const displaced = look.where === CURRENT || this.vectors.kind === "displacement";
      const needed = [...new Set([...(displaced ? ["u", "v"] : []),
        ...(this.#showsSurface ? [...PLACES, ...MOTIONS] : []),
        ...(this.vectors.kind === "principal" ? STRAINS : []), ...(look.hideOutliers ? ["status"] : [])])];
      const arrays = await result.arrays(needed, frame);
      const picture = look.background === CURRENT && !this.live ? await this.source.image(frame) : undefined;
      if (request !== this.#shown) return;
      if (picture) this.image.set(picture);
      else if (this.pictureFrame !== REFERENCE) await this.openImage();
      this.pictureFrame = picture ? frame : REFERENCE;
      if (look.hideOutliers && q.kind !== "status") values = this.#withoutOutliers(values, arrays.status);
      this.#showField(q, values, range, arrays, {isDifference, beside});
    } catch (error) {
      if (request === this.#shown) this.#showNothing(error.message);
    }
  }

  /** No colours at all rather than those of what was shown before, under another name. */
  #showNothing(why = "This result has no measured frame.") {
    this.field.set(null, null, null);
    this.otherField.set(null, null, null);
    this.contours.set(null, null, []);
    this.vectors.set(null, null, 1);
    this.legend.set(null);
    this.values = null;
    this.frameFacts?.replaceChildren();
    this.#drawHistogram();
    this.stage.redraw();
    say(why, "error");
  }

  async #range(q, frame) {
    const {look, result} = this;
    const range = look.range === "fixed"
      ? {min: look.min / this.unit().factor, max: look.max / this.unit().factor}
      : look.range === "all" ? await result.rangeOfAll(q.id) : await result.rangeOf(q.id, frame);
    return range.max > range.min ? range : {...range, max: range.min + 1e-9};
  }

  #withoutOutliers(values, status) {
    const outlier = this.result.meta.status_names.indexOf("outlier");
    return values.map((value, i) => (status[i] === outlier ? NaN : value));
  }

  #showField(q, values, range, arrays, {isDifference, beside}) {
    const {look, result, stage} = this, {grid, meta} = result;
    const unit = this.unit(q.kind), map = look.map === "auto" ? automaticMap(range) : look.map;
    if (look.range !== "fixed") range = rangeFor(map, range);
    const names = q.kind === "status" ? meta.status_names : null;
    const inPixels = (name) => (result.scale === 1 ? arrays[name] : arrays[name].map((value) => value / result.scale));
    const moved = look.where === CURRENT ? {u: inPixels("u"), v: inPixels("v")} : null;
    this.probes.motion = moved && this.#motion(moved);
    this.values = values;
    this.shownQuantity = q;
    this.shownFrame = this.frame;
    this.shownColours = {range, map, names, factor: unit.factor};
    this.field.set(grid, values, {range, map, names}, moved);
    this.field.side = beside ? "left" : null;
    Object.assign(this.otherField, {opacity: look.opacity, smooth: look.smooth, side: "right"});
    beside ? this.otherField.set(this.other.grid, beside, {range, map, names}) : this.otherField.set(null, null, null);
    const shown = {min: range.min * unit.factor, max: range.max * unit.factor};
    const levels = ticks(shown.min, shown.max, look.contourCount).map(({value, text}) => ({value: value / unit.factor, text}));
    this.contours.set(grid, names ? null : values, levels, moved);
    this.vectors.set(grid, arrays, 1 / result.scale, moved);
    this.legend.set({title: `${isDifference ? "Δ" : ""}${q.id}${unit.name ? ` [${unit.name}]` : ""}`, range: shown, map, names,
      scale: {mmPerPx: result.scale, unit: meta.length_unit}});
    this.surface.factor = look.motion;
    this.surface.set(grid, this.#showsSurface ? arrays : null, values, {range, map, names});
    this.#setLegendScale();
    if (look.range !== "fixed" && !names)
      for (const name of ["min", "max"]) $(`range-${name}`).value = number(shown[name], 4);
    this.#showFrame(q, values, unit);
    this.#drawHistogram();
    stage.redraw();
    this.#drawPlots();
  }

  /** The scale of the image, or that of the surface: mm in the plane of the screen. */
  #setLegendScale() {
    const {legend} = this.legend, {meta, scale} = this.result;
    if (legend) legend.scale = this.#showsSurface ? {mmPerPx: this.surface.mmPerPx(), unit: "mm"} : {mmPerPx: scale, unit: meta.length_unit};
  }

  #drawHistogram() {
    if (!this.histogram) return;
    const colours = this.shownColours, isShown = this.values && colours && !colours.names;
    this.histogram.hidden = !isShown;
    if (isShown) drawHistogram(this.histogram, this.values, colours.range, colours.map, colours.factor);
  }

  /** Where material of the reference is drawn, by displacements in px; where none is known, it stays. */
  #motion({u, v}) {
    const {result} = this;
    const shift = (place) => {
      const x = result.at(u, place.x, place.y), y = result.at(v, place.x, place.y);
      return Number.isNaN(x) ? {x: 0, y: 0} : {x, y};
    };
    const to = (place) => { const by = shift(place); return {x: place.x + by.x, y: place.y + by.y}; };
    const from = (moved) => {
      let place = moved;
      for (let k = 0; k < INVERSE_STEPS; ++k) {
        const by = shift(place);
        place = {x: moved.x - by.x, y: moved.y - by.y};
      }
      return place;
    };
    return {to, from};
  }

  #showFrame(q, values, unit) {
    const info = this.result.frames[this.frame];
    this.#nameFrame();
    const rows = [];
    if (q.kind !== "status") rows.push(...this.#statistics(values, unit));
    for (const [name, count] of Object.entries(info.counts ?? {})) if (count > 0) rows.push([name.replaceAll("_", " "), count]);
    this.frameFacts.replaceChildren(facts(rows));
  }

  #nameFrame() {
    const {result, frame} = this, info = result.frames[frame];
    if (info) this.timeBar.update(`${frame + 1} / ${result.frames.length}  ${info.name}` +
      (result.meta.time_unit === "s" ? `  ${number(info.time, 5)} s` : ""));
  }

  /** Mean, scatter and extremes, with their places. */
  #statistics(values, unit) {
    let count = 0, sum = 0, squares = 0, least = -1, most = -1;
    for (let i = 0; i < values.length; ++i) {
      const value = values[i];
      if (Number.isNaN(value)) continue;
      count += 1;
      sum += value;
      squares += value * value;
      if (least < 0 || value < values[least]) least = i;
      if (most < 0 || value > values[most]) most = i;
    }
    if (count === 0) return [["values", "none"]];
    const mean = sum / count, sd = Math.sqrt(Math.max(0, squares / count - mean * mean));
    const place = (node) => {
      const {nx, x0, y0, step} = this.result.grid;
      return `${number(values[node] * unit.factor)} at ${x0 + (node % nx) * step},${y0 + Math.floor(node / nx) * step}`;
    };
    return [["values", count], ["mean", `${number(mean * unit.factor)} ${unit.name}`], ["standard deviation", `${number(sd * unit.factor)} ${unit.name}`],
      ["smallest, at px", place(least)], ["largest, at px", place(most)]];
  }

  async #hover(place) {
    if (!place || !this.values) return void ($("cursor").textContent = "");
    if (this.#showsSurface) return this.#hoverSurface(place);
    const {result} = this, q = this.shownQuantity, unit = this.unit(q.kind), material = this.probes.motion?.from(place) ?? place;
    const node = result.nearest(material.x, material.y), grey = this.image.at(place);
    let words = `x ${place.x.toFixed(1)}  y ${place.y.toFixed(1)} px`;
    if (grey !== undefined) words += `   grey ${number(grey)}`;
    if (node >= 0) {
      const status = await result.array("status", this.frame);
      const name = result.meta.status_names[status[node]];
      if (q.kind !== "status") words += `   ${q.id} ${number(result.at(this.values, material.x, material.y) * unit.factor)} ${unit.name}`;
      const sigma = `sigma_${q.id}`;
      if (result.meta.arrays.includes(sigma))
        words += ` ± ${number((await result.array(sigma, this.frame))[node] * unit.factor, 2)}`;
      words += `   ${name?.replaceAll("_", " ") ?? ""}`;
    }
    $("cursor").textContent = words;
  }

  #hoverSurface(place) {
    const node = this.surface.nodeAt(place), q = this.shownQuantity, unit = this.unit(q.kind), {arrays} = this.surface;
    $("cursor").textContent = node < 0 ? "" : `${PLACES.map((name) => `${name} ${number(arrays[name][node], 5)}`).join("  ")} mm   ` +
      (q.kind === "status" ? this.result.meta.status_names[this.values[node]] : `${q.id} ${number(this.values[node] * unit.factor)} ${unit.name}`);
  }

  async #saveVideo() {
    const background = getComputedStyle($("drawing")).backgroundColor, shown = this.frame, perSecond = Number($("rate").value);
    try {
      say("Filming the frames…");
      const {blob, ending} = await film(this.stage.canvas, background, this.frameCount, perSecond, (frame) => this.timeBar.go(frame));
      download(`${this.shownQuantity.id}.${ending}`, blob, blob.type);
      say("");
    } catch (error) {
      say(error.message, "error");
    }
    await this.timeBar.go(shown);
  }

  #savePicture() {
    this.stage.canvas.toBlob((blob) => download(`${this.shownQuantity.id}_${this.shownFrame + 1}.png`, blob, "image/png"));
  }

  // Probes ----------------------------------------------------------------------------------------

  #listProbes() {
    this.probeList?.replaceChildren(...this.probes.all.map((probe) => {
      const name = h("input", {type: "text", class: "name", value: probe.name, "aria-label": "Name",
        onchange: () => { probe.name = name.value; this.#probesChanged(); this.stage.redraw(); }});
      const places = h("input", {type: "text", class: "places", value: corners(probe), "aria-label": `Places of ${probe.name}, px`,
        onchange: () => this.probes.retype(probe, places.value) || say("Places are x,y x,y … in px.", "error")});
      const swatch = h("span", {class: "swatch"});
      swatch.style.background = probe.colour;
      return h("li", {}, swatch, name, h("button", {type: "button", "aria-label": `Remove ${probe.name}`,
        onclick: () => this.probes.remove(probe)}, "×"), places, h("span", {class: "problem"}));
    }));
  }

  async #probesChanged() {
    this.#listProbes();
    this.onchange();
    this.plotBox.hidden = this.probes.all.length === 0 || document.body.dataset.tab !== "results";
    if (!this.result || this.live) return;
    this.#drawPlots();
    const request = ++this.#histories, {result} = this;
    for (const probe of this.probes.all) {
      const asked = {result, places: corners(probe)};
      if (probe.asked?.result === result && probe.asked.places === asked.places) continue;
      probe.problem = "";
      try {
        const isOver = () => request !== this.#histories;
        const ofImages = await this.source.history(result, probe.kind, probe.points, isOver);
        const values = this.isStereo ? await stereoHistory(result, probe.kind, probe.points, ofImages, isOver) : ofImages;
        if (request !== this.#histories) return;
        Object.assign(probe, {asked, values});
      } catch (error) {
        if (request !== this.#histories) return;
        Object.assign(probe, {asked, values: [], problem: error.message});
        say(error.message, "error");
      }
      this.#drawPlots();
    }
    this.#tellProblems();
  }

  #plottedQuantity() {
    return this.look.quantity === "status" ? "zncc" : this.look.quantity;
  }

  /** The titles over time; `tables` has those of a frame, without the rate. */
  #axisTitles() {
    const q = quantity(this.#plottedQuantity()), unit = this.unit(q.kind), strain = this.unit("strain");
    const hasSeconds = this.result.meta.time_unit === "s", per = hasSeconds ? "s" : "frame";
    const named = (name, unitName) => (unitName ? `${name} [${unitName}]` : name);
    const rated = (name, unitName) => (this.look.rate ? `rate of ${named(name, `${unitName || "1"}/${per}`)}` : named(name, unitName));
    return {x: hasSeconds ? "time [s]" : "frame", whole: !hasSeconds, isStrain: q.kind === "strain", quantity: named(q.id, unit.name),
      y: rated(q.id, unit.name), y2: rated("strain", strain.name), strain: named("strain", strain.name),
      factor: unit.factor, strainFactor: strain.factor};
  }

  /** The values of a probe as its curve shows them. */
  #curve(probe, values, titles) {
    const factor = probe.kind === "extensometer" ? titles.strainFactor : titles.factor;
    const scaled = values.map((value) => value * factor);
    return this.look.rate ? rates(scaled, this.result.frames.map(({time}) => time)) : scaled;
  }

  /** A strain has the same axis, whatever measured it. */
  #axisOf(probe, known, titles) {
    const isAlone = known.every((other) => other.probe.kind === "extensometer");
    return probe.kind === "extensometer" && !titles.isStrain && !isAlone ? "y2" : "y";
  }

  #historyAxes(known, titles) {
    const extensometers = known.filter(({probe}) => probe.kind === "extensometer").length;
    const y = extensometers === 0 ? titles.y : extensometers === known.length || titles.isStrain ? titles.y2 : titles.y;
    return {x: titles.x, whole: titles.whole, y, y2: `extensometer ${titles.y2}`};
  }

  /** Probes whose values are known, and their values in the order of the frames. */
  #known() {
    const {frames} = this.result, id = this.#plottedQuantity();
    return this.probes.all.filter((probe) => probe.asked?.result === this.result && probe.values.length === frames.length)
      .map((probe) => ({probe, values: probe.values.map((at) => (probe.kind === "extensometer" ? at.strain : ofProbe(id, at)))}));
  }

  async #drawPlots() {
    if (this.plotBox.hidden || this.live) return;
    const titles = this.#axisTitles(), {frames} = this.result, known = this.#known();
    this.historyPlot.show(known.map(({probe, values}) => ({
      label: probe.kind !== "extensometer" && titles.isStrain ? `${probe.name} ${this.#plottedQuantity()}` : probe.name,
      colour: probe.colour, axis: this.#axisOf(probe, known, titles),
      points: this.#curve(probe, values, titles).map((y, k) => ({x: frames[k].time, y})),
    })), this.#historyAxes(known, titles), frames[this.frame]?.time);
    this.#drawStress(known, titles);
    this.#tellProblems();
    await this.#drawProfiles(titles);
  }

  /** Of the lines, in the shown frame. */
  async #drawProfiles(titles) {
    const lines = this.probes.all.filter((probe) => probe.kind === "line"), {result, frame} = this;
    const turn = ++this.profileTurn; // answers may come after those of a later call
    $("profile-box").hidden = lines.length === 0;
    const profiles = [];
    for (const probe of lines) {
      const asked = {result, frame, places: corners(probe)};
      const isKnown = ["result", "frame", "places"].every((what) => probe.profile?.asked[what] === asked[what]);
      if (!isKnown) {
        const ofImages = await this.source.profile(result, probe.points, frame).catch(() => []);
        const points = this.isStereo ? await stereoProfile(result, probe.points, frame, ofImages) : ofImages;
        if (turn !== this.profileTurn || result !== this.result || frame !== this.frame) return;
        probe.profile = {asked, points};
      }
      profiles.push({probe, points: probe.profile.points.map((at) =>
        ({distance: at.distance, value: ofProbe(this.#plottedQuantity(), at)}))});
    }
    this.profiles = profiles;
    this.profilePlot.show(profiles.map(({probe, points}) => ({label: probe.name, colour: probe.colour,
      points: points.map(({distance, value}) => ({x: distance, y: value * titles.factor}))})),
    {x: `along the line [${result.meta.length_unit}]`, y: titles.quantity});
  }

  /** Why a probe has no value in this frame. */
  #tellProblems() {
    for (const [k, item] of [...(this.probeList?.children ?? [])].entries()) {
      const probe = this.probes.all[k], why = item.querySelector(".problem");
      if (probe && why) why.textContent = probe.problem || probe.values?.[this.frame]?.problem || "";
    }
  }

  #saveHistory() {
    const {frames} = this.result, titles = this.#axisTitles();
    const known = this.#known();
    const header = ["frame", ...(this.result.meta.time_unit === "s" ? ["time [s]"] : []), "name",
      ...known.map(({probe}) => `${probe.name} ${probe.kind === "extensometer" ? titles.y2 : titles.y}`)];
    const curves = known.map(({probe, values}) => this.#curve(probe, values, titles));
    download("history.csv", csv(header, frames.map((frame, k) => [frame.number ?? k + 1,
      ...(this.result.meta.time_unit === "s" ? [frame.time] : []), frame.name,
      ...curves.map((values) => values[k])])), "text/csv");
  }

  #saveProfile() {
    const titles = this.#axisTitles();
    const rows = this.profiles.flatMap(({probe, points}) =>
      points.map(({distance, value}) => [probe.name, distance, value * titles.factor]));
    download("profile.csv", csv(["line", `distance [${this.result.meta.length_unit}]`, titles.quantity], rows), "text/csv");
  }

  // Stress and strain -----------------------------------------------------------------------------

  /** A report shows the forces that it was written with: only the program reads tables. */
  #forceSection() {
    this.forceBox = h("div", {id: "force-columns"});
    if (!this.source.readsTables) return this.forces ? [section("Stress and strain", false, this.forceBox)] : [];
    return [section("Stress and strain", false,
      h("p", {class: "hint"}, "Forces of the test, as the machine exports them, against the strain of the probes."),
      h("div", {class: "row"}, h("button", {type: "button", id: "load-forces", onclick: () => this.#openForces()}, "Open forces…")),
      this.forceBox)];
  }

  #openForces() {
    openText(".csv,.txt,text/*", async (text, name) => {
      const before = this.forces;
      await this.#changeForces({name, text, column: null, area: 0});
      const {columns, problem} = this.forces.read;
      say(columns.length === 0 ? problem : "", "error");
      if (columns.length === 0) await this.#changeForces(before);
      this.onchange();
    });
  }

  /**
   * Takes over {name, text, column, area} of a table, or null. Its `read` becomes what the program reads for the frames of
   * this result: see view/loads_answer.hpp.
   */
  #changeForces(forces) {
    this.#forcesRead = this.#readForces(forces);
    return this.#forcesRead;
  }

  async #readForces(forces) {
    const turn = ++this.#forceTurns;
    const ask = async () => this.source.readLoads(forces, this.result);
    const read = forces && await ask().catch((error) => ({columns: [], problem: error.message}));
    if (turn !== this.#forceTurns) return;
    this.forces = forces && {...forces, read};
    this.#buildForces();
    this.#drawPlots();
  }

  #buildForces() {
    const {forces} = this, read = forces?.read;
    if (!this.forceBox) return;
    if (!read) return this.forceBox.replaceChildren();
    const set = async (change) => { await this.#changeForces({...this.forces, ...change}); this.onchange(); };
    const column = read.column ?? "", columns = read.columns.map((title) => [title, title]);
    this.forceBox.replaceChildren(
      h("p", {class: "hint", id: "force-note"}, read.note ? `${forces.name}: ${read.note}` : forces.name),
      ...(read.problem ? [h("p", {class: "problem", id: "force-problem"}, read.problem)] : []),
      ...(this.source.readsTables ? [
        labelled("force", select(column ? columns : [["", "choose…"], ...columns], column, (title) => set({column: title}), {id: "force-column"})),
        labelled("area, mm²", h("input", {type: "text", id: "force-area", placeholder: "force only", value: forces.area || "",
          onchange: (event) => set({area: Number(event.target.value.replace(",", "."))})}))]
        : [h("p", {class: "hint"}, `Column ${column}${forces.area > 0 ? `, area ${number(forces.area)} mm²` : ""}`)]));
  }

  /** The stress or load of a frame, by its place in the result; NaN if there is none. */
  #stressOf(k) { return this.forces.read.values[k] ?? NaN; }

  #strainProbes(known) {
    return known.filter(({probe}) => probe.kind === "extensometer" || quantity(this.#plottedQuantity()).kind === "strain");
  }

  #drawStress(known, titles) {
    const read = this.forces?.read;
    $("stress-box").hidden = !read?.values;
    if (!read?.values) return;
    this.stressPlot.show(this.#strainProbes(known).map(({probe, values}) => ({label: probe.name, colour: probe.colour,
      points: values.map((value, k) => ({x: value * titles.strainFactor, y: this.#stressOf(k)}))})),
    {x: titles.strain, y: read.title});
  }

  async #saveStress() {
    await this.#forcesRead;  // a column or an area that was just chosen
    if (!this.forces?.read?.values) return;
    const {frames} = this.result;
    const probes = this.#strainProbes(this.#known());
    download("stress_strain.csv", csv(["frame", this.forces.read.title, ...probes.map(({probe}) => `${probe.name} strain`)],
      frames.map((frame, k) => [frame.number ?? k + 1, this.#stressOf(k), ...probes.map(({values}) => values[k])])), "text/csv");
  }
}
