// The page after measuring: fields over the image, time, probes.

import {MAPS, automaticMap, rangeFor} from "dic/colours.js";
import {$, csv, download, h, labelled, number, openText, say, section, select} from "dic/dom.js";
import {forcesOfFrames, parseTable} from "dic/forces.js";
import {ContourLayer, FieldLayer, ImageLayer, LegendLayer, VectorLayer} from "dic/layers.js";
import {Plot} from "dic/plots.js";
import {PROBE_KINDS, Probes, corners} from "dic/probes.js";
import {STRAINS, STRAIN_UNITS, available, ofProbe, quantity, unitOf} from "dic/quantities.js";
import {facts} from "dic/setup_page.js";
import {ticks} from "dic/ticks.js";

const CURRENT = "current", REFERENCE = "reference";

export class ResultsPage {
  image = new ImageLayer();
  field = new FieldLayer();
  contours = new ContourLayer();
  vectors = new VectorLayer();
  legend = new LegendLayer();
  profiles = []; // profiles of the lines, as drawn
  profileTurn = 0;
  look = {quantity: "u", map: "auto", range: "all", min: 0, max: 1, strainUnit: "1", contourCount: 8, background: REFERENCE,
    where: REFERENCE, hideOutliers: false};
  frame = 0;
  live = false;
  forces = null;
  #shown = 0;      // counts requests, so that a slow one does not replace a later one
  #histories = 0;

  constructor(source, stage, timeBar) {
    Object.assign(this, {source, stage, timeBar});
    this.probes = new Probes(stage, () => this.#probesChanged());
    this.probes.onplaced = () => say("");
    this.panel = h("div", {});
    this.plotBox = $("plots");
    this.historyPlot = new Plot($("plot-history"), (index) => this.timeBar.go(index));
    this.profilePlot = new Plot($("plot-profile"));
    this.stressPlot = new Plot($("plot-stress"), (index) => this.timeBar.go(index));
    $("save-history").addEventListener("click", () => this.#saveHistory());
    $("save-profile").addEventListener("click", () => this.#saveProfile());
    $("save-stress").addEventListener("click", () => this.#saveStress());
  }

  /** A result; live: that of a run under way, with one frame. */
  async open(result, live = false) {
    const first = !this.result || this.result.meta.grid.nx !== result.meta.grid.nx;
    this.result = result;
    this.live = live;
    this.frame = live ? 0 : Math.max(0, result.frames.length - 1);
    this.stage.setImageSize(result.meta.image.width, result.meta.image.height);
    if (first || !live) this.#build();
    await this.refresh();
    if (!live) this.#probesChanged();
  }

  /** More frames of the result. Whoever looks at the last one sees the new last one. */
  async grow(frames) {
    const wasLast = this.frame === this.result.frames.length - 1;
    this.result.grow(frames);
    if (wasLast) this.frame = this.result.frames.length - 1;
    await this.refresh();
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
    this.stage.layers = [this.image, this.field, this.contours, this.vectors, this.probes, this.legend];
    this.stage.setTool(this.probes);
    this.stage.onhover = (place) => this.#hover(place);
    this.timeBar.attach(this);
    if (this.result) this.#nameFrame();
    this.stage.redraw();
  }

  // Panel -----------------------------------------------------------------------------------------

  #build() {
    const {look} = this;
    const set = (name) => (value) => { look[name] = value; this.refresh(); };
    const box = (id, label, checked, change) => h("label", {class: "check"},
      h("input", {type: "checkbox", id, checked, onchange: (event) => change(event.target.checked)}), h("span", {}, label));
    const limit = (name) => h("input", {type: "text", id: `range-${name}`, class: "short", "aria-label": `${name}imum`,
      value: "", onchange: (event) => { look[name] = Number(event.target.value); look.range = "fixed"; this.#sync(); this.refresh(); }});
    const quantities = available(this.result.meta.arrays);
    if (!quantities.some((q) => q.id === look.quantity)) look.quantity = quantities[0]?.id ?? "u";
    this.rangeSelect = select([["all", "one for all frames"], ["frame", "each frame its own"], ["fixed", "fixed"]], look.range,
      set("range"), {id: "range-mode"});
    this.frameFacts = h("div", {id: "frame-facts"});
    this.probeList = h("ol", {class: "shapes", id: "probes"});
    this.panel.replaceChildren(
      section("Show", true,
        labelled("quantity", select(quantities.map((q) => [q.id, q.label]), look.quantity, (id) => {
          look.quantity = id;
          if (look.range === "fixed") look.range = "all";
          this.#sync();
          this.refresh();
          this.#probesChanged();
        }, {id: "quantity"})),
        labelled("opacity", h("input", {type: "range", id: "opacity", min: 0, max: 1, step: 0.05, value: this.field.opacity,
          oninput: (event) => { this.field.opacity = Number(event.target.value); this.stage.redraw(); }})),
        labelled("colours", select([["auto", "automatic"], ...MAPS.map((map) => [map, map])], look.map, set("map"), {id: "map"})),
        labelled("range", this.rangeSelect),
        h("div", {class: "row"}, limit("min"), h("span", {}, "to"), limit("max")),
        labelled("strain in", select(Object.keys(STRAIN_UNITS).map((unit) => [unit, unit === "1" ? "1 (no unit)" : unit]),
          look.strainUnit, (unit) => { set("strainUnit")(unit); this.#probesChanged(); }, {id: "strain-unit"})),
        labelled("image", select([[REFERENCE, "reference"], ...(this.result.meta.has_images ? [[CURRENT, "current frame"]] : [])],
          look.background, set("background"), {id: "background"})),
        labelled("shape", select([[REFERENCE, "undeformed"], [CURRENT, "deformed"]], look.where, set("where"), {id: "where"})),
        box("smooth", "smooth colours", this.field.smooth, (on) => { this.field.smooth = on; this.stage.redraw(); }),
        box("outliers", "hide outliers", look.hideOutliers, set("hideOutliers"))),
      section("Lines and arrows", false,
        box("contours", "contour lines", this.contours.enabled, (on) => { this.contours.enabled = on; this.refresh(); }),
        labelled("about so many", h("input", {type: "number", id: "contour-count", min: 1, max: 30, value: look.contourCount,
          onchange: (event) => set("contourCount")(Math.min(30, Math.max(1, Number(event.target.value))))})),
        labelled("vectors", select([["none", "none"], ["displacement", "displacement"], ["principal", "principal strains"]],
          this.vectors.kind, (kind) => { this.vectors.kind = kind; this.refresh(); }, {id: "vectors"})),
        labelled("enlarged", select([["0", "to be seen"], ["1", "1 ×"], ["10", "10 ×"], ["100", "100 ×"], ["1000", "1000 ×"]],
          String(this.vectors.factor), (factor) => { this.vectors.factor = Number(factor); this.stage.redraw(); }, {id: "enlarged"}))),
      section("Probes", true,
        h("div", {class: "tools", role: "toolbar"}, Object.entries(PROBE_KINDS).map(([kind, {label}]) =>
          h("button", {type: "button", id: `probe-${kind}`, onclick: () => {
            this.probes.place(kind);
            say(kind === "area" ? "Click the corners; double click closes the area." :
              kind === "point" ? "Click the place." : "Drag from end to end.");
          }}, label))),
        this.probeList),
      section("Stress and strain", false,
        h("p", {class: "hint"}, "Forces of the test from a CSV file, against the strain of the probes."),
        h("div", {class: "row"}, h("button", {type: "button", id: "load-forces", onclick: () => this.#openForces()}, "Open forces…")),
        (this.forceBox = h("div", {id: "force-columns"}))),
      section("This frame", true, this.frameFacts),
      h("div", {class: "row end"}, h("button", {type: "button", id: "save-picture", onclick: () => this.#savePicture()},
        "Save picture")));
    this.#listProbes();
    this.#buildForces();
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
    if (!result || result.frames.length === 0) return this.#showNothing();
    const q = quantity(look.quantity);
    try {
      let values = await result.values(q.id, frame);
      const range = q.kind === "status" ? {min: 0, max: 1} : await this.#range(q, frame);
      const displaced = look.where === CURRENT || this.vectors.kind === "displacement";
      const needed = [...new Set([...(displaced ? ["u", "v"] : []),
        ...(this.vectors.kind === "principal" ? STRAINS : []), ...(look.hideOutliers ? ["status"] : [])])];
      const arrays = await result.arrays(needed, frame);
      const picture = look.background === CURRENT && !this.live ? await this.source.image(frame) : undefined;
      if (request !== this.#shown) return;
      if (picture) this.image.set(picture);
      else if (this.pictureFrame !== REFERENCE) await this.openImage();
      this.pictureFrame = picture ? frame : REFERENCE;
      if (look.hideOutliers && q.kind !== "status") values = this.#withoutOutliers(values, arrays.status);
      this.#showField(q, values, range, arrays);
    } catch (error) {
      say(error.message, "error");
    }
  }

  #showNothing() {
    this.field.set(null, null, null);
    this.stage.redraw();
    say("This result has no measured frame.", "error");
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

  #showField(q, values, range, arrays) {
    const {look, result, stage} = this, {grid, meta} = result;
    const unit = this.unit(q.kind), map = look.map === "auto" ? automaticMap(range) : look.map;
    if (look.range !== "fixed") range = rangeFor(map, range);
    const names = q.kind === "status" ? meta.status_names : null;
    const inPixels = (name) => (result.scale === 1 ? arrays[name] : arrays[name].map((value) => value / result.scale));
    const moved = look.where === CURRENT ? {u: inPixels("u"), v: inPixels("v")} : null;
    this.values = values;
    this.shownQuantity = q;
    this.field.set(grid, values, {range, map, names}, moved);
    const shown = {min: range.min * unit.factor, max: range.max * unit.factor};
    const levels = ticks(shown.min, shown.max, look.contourCount).map(({value, text}) => ({value: value / unit.factor, text}));
    this.contours.set(grid, names ? null : values, levels, moved);
    this.vectors.set(grid, arrays, 1 / result.scale, moved);
    this.legend.set({title: `${q.id}${unit.name ? ` [${unit.name}]` : ""}`, range: shown, map, names,
      scale: {mmPerPx: result.scale, unit: meta.length_unit}});
    if (look.range !== "fixed" && !names)
      for (const name of ["min", "max"]) $(`range-${name}`).value = number(shown[name], 4);
    this.#showFrame(q, values, unit);
    stage.redraw();
    this.#drawPlots();
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
    const {result} = this, q = this.shownQuantity, unit = this.unit(q.kind);
    const node = result.nearest(place.x, place.y), grey = this.image.at(place);
    let words = `x ${place.x.toFixed(1)}  y ${place.y.toFixed(1)} px`;
    if (grey !== undefined) words += `   grey ${number(grey)}`;
    if (node >= 0) {
      const status = await result.array("status", this.frame);
      const name = result.meta.status_names[status[node]];
      if (q.kind !== "status") words += `   ${q.id} ${number(result.at(this.values, place.x, place.y) * unit.factor)} ${unit.name}`;
      const sigma = `sigma_${q.id}`;
      if (result.meta.arrays.includes(sigma))
        words += ` ± ${number((await result.array(sigma, this.frame))[node] * unit.factor, 2)}`;
      words += `   ${name?.replaceAll("_", " ") ?? ""}`;
    }
    $("cursor").textContent = words;
  }

  #savePicture() {
    this.stage.canvas.toBlob((blob) => download(`${this.look.quantity}_${this.frame + 1}.png`, blob, "image/png"));
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
    this.plotBox.hidden = this.probes.all.length === 0;
    if (!this.result || this.live) return;
    this.#drawPlots();
    const request = ++this.#histories, {result} = this;
    for (const probe of this.probes.all) {
      const asked = {result, places: corners(probe)};
      if (probe.asked?.result === result && probe.asked.places === asked.places) continue;
      probe.problem = "";
      try {
        const values = await this.source.history(result, probe.kind, probe.points, () => request !== this.#histories);
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

  #axisTitles() {
    const q = quantity(this.#plottedQuantity()), unit = this.unit(q.kind), strain = this.unit("strain");
    const named = (name, unitName) => (unitName ? `${name} [${unitName}]` : name);
    return {x: this.result.meta.time_unit === "s" ? "time [s]" : "frame", y: named(q.id, unit.name),
      y2: named("extensometer strain", strain.name), factor: unit.factor, strainFactor: strain.factor};
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
    const factorOf = (probe) => (probe.kind === "extensometer" ? titles.strainFactor : titles.factor);
    this.historyPlot.show(known.map(({probe, values}) => ({
      label: probe.name, colour: probe.colour, axis: probe.kind === "extensometer" ? "y2" : "y",
      points: values.map((value, k) => ({x: frames[k].time, y: value * factorOf(probe)})),
    })), titles, frames[this.frame]?.time);
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
        const points = await this.source.profile(result, probe.points, frame).catch(() => []);
        if (turn !== this.profileTurn || result !== this.result || frame !== this.frame) return;
        probe.profile = {asked, points};
      }
      profiles.push({probe, points: probe.profile.points.map((at) =>
        ({distance: at.distance, value: ofProbe(this.#plottedQuantity(), at)}))});
    }
    this.profiles = profiles;
    this.profilePlot.show(profiles.map(({probe, points}) => ({label: probe.name, colour: probe.colour,
      points: points.map(({distance, value}) => ({x: distance, y: value * titles.factor}))})),
    {x: `along the line [${result.meta.length_unit}]`, y: titles.y});
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
    const strain = titles.y2.replace("extensometer ", "");
    const header = ["frame", ...(this.result.meta.time_unit === "s" ? ["time [s]"] : []), "name",
      ...known.map(({probe}) => `${probe.name} ${probe.kind === "extensometer" ? strain : titles.y}`)];
    download("history.csv", csv(header, frames.map((frame, k) => [frame.number ?? k + 1,
      ...(this.result.meta.time_unit === "s" ? [frame.time] : []), frame.name,
      ...known.map(({probe, values}) => values[k] * (probe.kind === "extensometer" ? titles.strainFactor : titles.factor))])),
    "text/csv");
  }

  #saveProfile() {
    const titles = this.#axisTitles();
    const rows = this.profiles.flatMap(({probe, points}) =>
      points.map(({distance, value}) => [probe.name, distance, value * titles.factor]));
    download("profile.csv", csv(["line", `distance [${this.result.meta.length_unit}]`, titles.y], rows), "text/csv");
  }

  // Stress and strain -----------------------------------------------------------------------------

  #openForces() {
    openText(".csv,.txt,text/*", (content, name) => {
      const table = parseTable(content);
      if (table.rows.length === 0) return say(`${name} has no numbers.`, "error");
      const guess = table.header.findIndex((title) => /force|load|kraft|\bF\b|\[k?N\]/i.test(title));
      this.forces = {name, table, column: guess >= 0 ? guess : table.header.length - 1, by: "row", factor: 1, area: 0};
      this.#buildForces();
      this.#drawPlots();
    });
  }

  #buildForces() {
    const {forces} = this;
    if (!forces) return this.forceBox?.replaceChildren();
    const columns = forces.table.header.map((title, k) => [String(k), title]);
    const set = (name, convert) => (value) => { forces[name] = convert(value); this.#drawPlots(); };
    this.forceBox.replaceChildren(
      h("p", {class: "hint"}, `${forces.name}: ${forces.table.rows.length} rows`),
      labelled("force", select(columns, String(forces.column), set("column", Number), {id: "force-column"})),
      labelled("unit", select([["1", "N"], ["1000", "kN"]], String(forces.factor), set("factor", Number), {id: "force-unit"})),
      labelled("matched by", select([["row", "a row per frame"],
        ...columns.map(([k, title]) => [k, `${this.result.meta.time_unit === "s" ? "time" : "frame"} in ${title}`])], String(forces.by),
      set("by", (value) => (value === "row" ? value : Number(value))), {id: "force-match"})),
      labelled("area, mm²", h("input", {type: "text", id: "force-area", placeholder: "force only",
        value: forces.area || "", onchange: (event) => set("area", Number)(event.target.value)})));
  }

  #stress() {
    const {forces} = this;
    const values = forcesOfFrames(forces.table, forces.column, forces.by, this.result.frames);
    return values.map((force) => (force * forces.factor) / (forces.area > 0 ? forces.area : 1));
  }

  #stressTitle() { return this.forces.area > 0 ? "stress [MPa]" : "force [N]"; }

  #strainProbes(known) {
    return known.filter(({probe}) => probe.kind === "extensometer" || quantity(this.#plottedQuantity()).kind === "strain");
  }

  #drawStress(known, titles) {
    $("stress-box").hidden = !this.forces;
    if (!this.forces) return;
    const stress = this.#stress();
    this.stressPlot.show(this.#strainProbes(known).map(({probe, values}) => ({label: probe.name, colour: probe.colour,
      points: values.map((value, k) => ({x: value * titles.strainFactor, y: stress[k]}))})),
    {x: titles.y2.replace("extensometer ", ""), y: this.#stressTitle()});
  }

  #saveStress() {
    const titles = this.#axisTitles(), {frames} = this.result, stress = this.#stress();
    const probes = this.#strainProbes(this.#known());
    download("stress_strain.csv", csv(["frame", this.#stressTitle(), ...probes.map(({probe}) => `${probe.name} strain`)],
      frames.map((frame, k) => [frame.number ?? k + 1, stress[k], ...probes.map(({values}) => values[k])])), "text/csv");
  }
}
