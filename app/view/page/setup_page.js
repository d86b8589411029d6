// The page before measuring: region, scale, settings, preview, run.

import {$, download, h, labelled, number, openText, say, section, select} from "dic/dom.js";
import {FieldLayer, ImageLayer, LegendLayer} from "dic/layers.js";
import {RegionEditor} from "dic/region_editor.js";
import {Result} from "dic/result.js";
import {Settings} from "dic/settings.js";
import {parse, outline, text, fromOutline} from "dic/shapes.js";

const TOOLS = [
  ["select", "Select", "Move shapes and corners; double click adds a corner; Delete removes the shape"],
  ["polygon", "Polygon", "Click the corners; double click, Enter or the first corner closes it"],
  ["rectangle", "Rectangle", "Drag from corner to corner"],
  ["circle", "Circle", "Drag from the centre to the outline"],
  ["scale", "Scale", "Drag along a line of known length"],
];
const POLL_MS = 200;

export class SetupPage {
  image = new ImageLayer();
  sigma = new FieldLayer();
  legend = new LegendLayer();

  frame = 0;

  /**
   * onlive(result), onresult(): show fields of a run under way, and its finished result. onchange(): the user has changed
   * what a project keeps.
   */
  constructor(source, state, stage, timeBar, {onlive, onresult, onchange}) {
    Object.assign(this, {source, state, stage, timeBar, onlive, onresult, onchange});
    this.editor = new RegionEditor(stage, {
      onchange: () => this.#shapesChanged(), onscale: (px) => this.#askLength(px),
    });
    this.settings = new Settings(state.options, () => this.#settingsChanged());
    this.panel = this.#build();
    this.settings.load(state.values);
    this.editor.shapes = this.settings.shapes();
    this.#shapesChanged();
    this.#choose("select");
  }

  // Project ---------------------------------------------------------------------------------------

  collect() { return Object.fromEntries(this.settings.values); }

  restore(values) {
    this.settings.load(values);
    this.editor.replace(this.settings.shapes());
  }

  async open() {
    const image = await this.source.image("reference");
    this.image.set(image);
    this.stage.setImageSize(this.state.reference.width, this.state.reference.height);
  }

  activate() {
    this.stage.layers = [this.image, this.sigma, this.editor, this.legend];
    this.stage.setTool(this.editor);
    this.stage.onhover = (place) => this.#hover(place);
    this.timeBar.attach(this);
    this.#nameFrame();
    this.stage.redraw();
  }

  // Frames ----------------------------------------------------------------------------------------

  get frameCount() { return this.state.frames.names.length; }

  async showFrame(frame) {
    try {
      this.image.set(await this.source.frame(frame));
      this.frame = frame;
    } catch (error) {
      say(error.message, "error");
    }
    this.#nameFrame();
    this.stage.redraw();
  }

  #nameFrame() {
    const {names} = this.state.frames;
    this.timeBar.update(`${this.frame + 1} / ${names.length}  ${names[this.frame]}${this.frame === 0 ? "  (reference)" : ""}`);
  }

  #hover(place) {
    $("cursor").textContent = this.image.describe(place);
    this.stage.redraw();
  }

  // Panel -----------------------------------------------------------------------------------------

  #build() {
    this.gaugeBox = h("p", {class: "hint", id: "setup-gauge"});
    const button = (id, label, hint, onclick) => h("button", {id, type: "button", title: hint, onclick}, label);
    this.toolButtons = TOOLS.map(([mode, label, hint]) => button(`tool-${mode}`, label, hint, () => this.#choose(mode)));
    this.shapeList = h("ol", {class: "shapes", id: "shapes"});
    this.previewBox = h("div", {id: "preview-result", class: "facts"});
    this.command = h("textarea", {id: "command", readOnly: true, rows: 4, spellcheck: false,
      "aria-label": "Command line that does the same"});
    this.runBox = h("div", {class: "hint counts"});
    this.scaleInput = h("input", {type: "text", id: "scale", placeholder: "none",
      onchange: (event) => this.settings.set("scale", event.target.value.trim())});
    this.runButton = h("button", {id: "run", class: "primary", type: "button", onclick: () => this.#run()}, "Run");
    $("cancel").addEventListener("click", () => this.source.cancel());
    return h("div", {},
      section("Region of interest", true,
        h("div", {class: "tools", role: "toolbar"}, ...this.toolButtons),
        h("label", {class: "check"}, h("input", {type: "checkbox", id: "hole",
          onchange: (event) => { this.editor.hole = event.target.checked; }}), h("span", {}, "draw holes (left out)")),
        this.shapeList,
        h("div", {class: "row"},
          button("save-mask", "Save mask", "The region as a picture: white inside, black outside", () => this.#saveMask()))),
      section("Settings", true,
        labelled("scale, mm per px", this.scaleInput, "Or draw a line of known length with the tool Scale"),
        this.settings.form,
        this.gaugeBox,
        h("div", {class: "row"},
          button("load-toml", "Open settings…", "A file that was saved here, or written for dic track", () => this.#openSettings()),
          button("save-toml", "Save settings", "A file in TOML that dic track reads, too",
            () => download("dic.toml", this.settings.toml(), "application/toml")))),
      section("Preview", true,
        h("p", {class: "hint"}, "What the reference alone says: speckle, contrast, predicted noise of displacement and strain."),
        labelled("strain noise, µm/m", (this.demanded = h("input", {type: "number", id: "strain-sigma", min: 1, step: "any", value: 200})),
          "Noise of strain that you accept: the recommended gauge length is the smallest that has less"),
        h("div", {class: "row"}, button("preview", "Preview", "Takes less than a second", () => this.#preview())),
        this.previewBox),
      section("Measure", true,
        h("div", {class: "row"}, this.runButton,
          h("label", {class: "check"}, this.force = h("input", {type: "checkbox", id: "force"}),
            h("span", {}, "replace an earlier result"))), this.runBox,
        h("p", {class: "hint"}, "The same on the command line:"), this.command,
        h("div", {class: "row"}, button("copy", "Copy", "Copy the command line",
          () => navigator.clipboard.writeText(this.command.value).then(() => say("Copied."))))));
  }

  #choose(mode) {
    this.editor.setMode(mode);
    this.toolButtons.forEach((b, k) => b.setAttribute("aria-pressed", String(TOOLS[k][0] === mode)));
  }

  #shapesChanged() {
    this.settings.setShapes(this.editor.shapes);
    this.shapeList.replaceChildren(...this.editor.shapes.map((s, k) => this.#shapeRow(s, k)));
    if (this.editor.shapes.length === 0)
      this.shapeList.replaceChildren(h("li", {class: "hint"}, "The whole image. Draw a shape to measure less."));
    this.sigma.set(null, null, null);
    this.legend.set(null);
    this.#settingsChanged();
  }

  /** A shape by its corners: for the keyboard. */
  #shapeRow(s, index) {
    const corners = s.kind === "circle" ? s.points : outline(s);
    const input = h("input", {type: "text", value: text(corners), "aria-label": `Corners of shape ${index + 1}`,
      onfocus: () => { this.editor.selected = index; this.stage.redraw(); },
      onchange: () => this.#retype(index, input)});
    const kind = h("button", {type: "button", title: "Inside or hole", class: s.hole ? "hole" : "",
      onclick: () => this.editor.change(() => { s.hole = !s.hole; })}, `${s.hole ? "hole " : ""}${s.kind}`);
    const remove = h("button", {type: "button", title: "Remove", "aria-label": `Remove shape ${index + 1}`,
      onclick: () => this.editor.remove(index)}, "×");
    return h("li", {class: index === this.editor.selected ? "selected" : ""}, kind, input, remove);
  }

  #retype(index, input) {
    const old = this.editor.shapes[index];
    const typed = old.kind === "circle" ? parse(`${input.value} 0,0`)?.slice(0, 2) : parse(input.value);
    if (!typed) return say("Corners are x,y x,y … in px.", "error");
    this.editor.change(() => {
      if (old.kind === "circle") old.points = typed;
      else this.editor.shapes[index] = fromOutline(typed, old.hole);
    });
  }

  #settingsChanged() {
    if (!this.panel) return;
    this.editor.grid.subset = Number(this.settings.value("subset")) || 33;
    this.editor.grid.step = Math.max(1, Number(this.settings.value("step")) || 5);
    this.command.value = this.settings.command(this.state.frames.typed);
    this.scaleInput.value = this.settings.values.get("scale") ?? "";
    this.#showGauge();
    this.onchange();
    this.stage.redraw();
  }

  #showGauge() {
    const gauge = this.settings.gauge(), scale = Number(this.settings.value("scale"));
    this.gaugeBox.textContent = Number.isFinite(gauge)
      ? `Gauge length of the strain: ${gauge} px${scale > 0 ? `, ${number(gauge * scale)} mm` : ""}` : "";
  }

  #askLength(px) {
    const dialog = $("length-dialog");
    $("length-px").textContent = `${px.toFixed(1)} px`;
    dialog.onclose = () => {
      const length = Number($("length-mm").value);
      if (dialog.returnValue === "ok" && length > 0) {
        this.settings.set("scale", String(Number((length / px).toPrecision(7))));
        say(`Scale: ${this.settings.value("scale")} mm per px.`);
      }
      this.editor.scaleLine = null;
      this.#choose("select");
    };
    dialog.returnValue = "";
    $("length-cancel").onclick = () => dialog.close();
    dialog.showModal();
    $("length-mm").focus();
  }

  // Actions ---------------------------------------------------------------------------------------

  #openSettings() {
    openText(".toml,text/plain", async (content, name) => {
      try {
        this.restore((await this.source.readSettings(content)).values);
        say(`Settings of ${name}.`);
      } catch (error) {
        say(error.message, "error");
      }
    });
  }

  async #saveMask() {
    try {
      const {width, height} = this.state.reference;
      const mask = await this.source.mask(this.settings.toml());
      const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
      const pixels = context.createImageData(width, height);
      mask.forEach((value, i) => pixels.data.set([value, value, value, 255], 4 * i));
      context.putImageData(pixels, 0, 0);
      download("roi.png", await canvas.convertToBlob({type: "image/png"}), "image/png");
    } catch (error) {
      say(error.message, "error");
    }
  }

  async #preview() {
    try {
      const found = await this.source.preview(this.settings.toml(), Number(this.demanded.value) * 1e-6 || undefined);
      this.#showPreview(found);
      say("");
    } catch (error) {
      say(error.message, "error");
    }
  }

  #showPreview(found) {
    const values = Float32Array.from(found.sigma.values, (value) => value ?? NaN);
    const grid = {...found.sigma.grid};
    const known = values.filter((value) => !Number.isNaN(value)).sort();
    const range = {min: 0, max: known[Math.floor(0.98 * (known.length - 1))] || 1};
    this.sigma.set(grid, values, {range, map: "viridis"});
    this.sigma.opacity = 0.55;
    this.legend.set({title: "sigma [px]", range, map: "viridis"});
    const gauge = (px) => `${px} px${scale > 0 ? `, ${number(px * scale)} mm` : ""}`;
    const scale = Number(this.settings.value("scale")), {strain} = found, better = strain.recommended;
    const useForStrain = h("button", {type: "button", id: "use-for-strain", onclick: () => {
      for (const [name, value] of [["subset", found.subset], ["step", found.step], ["strain-window", better.window]])
        this.settings.set(name, String(value));
      this.settings.build();
    }}, `Use them with strain window ${better.window}`);
    const use = h("button", {type: "button", id: "use-recommended", onclick: () => {
      this.settings.set("subset", String(found.subset));
      this.settings.set("step", String(found.step));
      this.settings.build();
    }}, `Use subset ${found.subset}, step ${found.step}`);
    this.previewBox.replaceChildren(
      facts([
        ["speckle", `${number(found.speckle_size, 3)} px`],
        ["contrast", `${number(found.contrast, 3)} grey levels (${number(100 * found.relative_contrast, 2)} %)`],
        ["noise", `${number(found.noise, 2)} grey levels`],
        ["saturated", `${number(100 * found.saturated, 2)} %`],
        ["points", `${found.points}`],
        ["sigma, median", `${number(found.sigma.median, 2)} px`],
        ["sigma, 9 of 10 below", `${number(found.sigma.ninety_percent, 2)} px`],
        ["sigma of strain", `${number(1e6 * strain.sigma, 3)} µm/m`],
        ["gauge length", gauge(strain.gauge)],
      ]),
      h("p", {}, found.reason), use,
      h("p", {}, better.is_reached
        ? `For strain: window ${better.window} with them has a sigma of ${number(1e6 * better.sigma, 3)} µm/m, below the ` +
          `${number(1e6 * strain.demanded)} that you accept, with a gauge length of ${gauge(better.gauge)}.`
        : `For strain: even window ${better.window}, with a gauge length of ${gauge(better.gauge)}, leaves a sigma of ` +
          `${number(1e6 * better.sigma, 3)} µm/m; a larger subset, more contrast or less noise is needed.`), useForStrain);
    this.stage.redraw();
  }

  async #run() {
    try {
      await this.source.run(this.settings.toml(), this.force.checked);
      say("");
      await this.watch();
    } catch (error) {
      say(error.message, "error");
    }
  }

  /** Shows a run that is under way, until its end. */
  async watch() {
    this.runButton.disabled = true;
    $("run-state").hidden = false;
    try {
      await this.#follow();
    } finally {
      this.runButton.disabled = false;
      $("run-state").hidden = true;
    }
  }

  /** Until the run has ended. */
  async #follow() {
    let shown = 0;
    for (;;) {
      const now = await this.source.progress();
      this.#showProgress(now);
      if (now.state !== "running") return this.#ended(now);
      if (now.live > shown) {
        shown = now.live;
        const meta = await this.source.live();
        await this.onlive(new Result(meta, (name) => this.source.loadLive(name)));
      }
      await new Promise((resume) => setTimeout(resume, POLL_MS));
    }
  }

  /** In the header, whatever page is shown. */
  #showProgress(now) {
    const [bar, words] = $("run-state").children;
    if (now.frames > 0) Object.assign(bar, {max: now.frames, value: now.frame});
    else bar.removeAttribute("value");
    words.textContent = `frame ${now.frame}${now.frames ? ` of ${now.frames}` : ""}: ${now.stage}` +
      (now.points_per_second > 0 ? `, ${number(Math.round(now.points_per_second))} points/s` : "");
    this.runBox.textContent = Object.entries(now.counts ?? {}).filter(([, count]) => count > 0)
      .map(([name, count]) => `${name.replaceAll("_", " ")} ${count}`).join(", ");
  }

  async #ended(now) {
    if (now.state === "failed") return say(now.error, "error");
    if (now.has_result) await this.onresult();
    if (now.error) say(`In ${now.output} ${now.error}`, "error");
    else say(now.state === "cancelled" ? "Cancelled; what was finished is saved." : `Done: ${now.output}`);
  }
}

/** A table of names and values. */
export function facts(rows) {
  return h("table", {class: "facts"}, h("tbody", {}, rows.map(([name, value]) =>
    h("tr", {}, h("th", {scope: "row"}, name), h("td", {}, value instanceof Node ? value : String(value))))));
}
