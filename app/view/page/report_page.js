// The text of a report: what the iDICs Good Practices Guide asks a DIC report to state, pictures, every setting, the frames.

import {$, h, number} from "dic/dom.js";
import {figuresOf, framesOf} from "dic/metrology.js";
import {fieldPicture} from "dic/pictures.js";
import {Plot} from "dic/plots.js";
import {available, namesOf, quantity} from "dic/quantities.js";
import {facts} from "dic/setup_page.js";
import {useForPrint} from "dic/theme.js";

const shown = (value) => (value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value));
/** Rows that only people know; the words are those of the program. */
const WRITTEN = ["specimen", "operator", "camera", "lens", "lighting", "pattern"];

export class ReportPage {
  requests = 0;  // counts drawings, so that a slow one does not replace a later one
  texts = {};  // what was written here, by name; the result's own words are not among them

  /** results: the page whose probes and units the pictures have. save(): keeps the report as a file. onchange(): a text was written. */
  constructor(results, {save, onchange}) {
    Object.assign(this, {results, save, onchange});
    this.pictures = h("div", {class: "pictures"});
    this.metrology = h("div", {class: "metrology"});
    this.curves = h("figure", {class: "wide", hidden: true}, h("figcaption", {}, "Over time"),
      h("div", {class: "plot"}, (this.canvas = h("canvas", {id: "report-history"}))));
    window.addEventListener("beforeprint", () => useForPrint(true));
    window.addEventListener("afterprint", () => useForPrint(false));
  }

  collect() { return {...this.texts}; }

  restore(texts) {
    this.texts = {...texts};
    if (this.meta) this.open(this.meta);
  }

  /** Tables of bias and noise from the frames that are named for them. */
  async #drawMetrology() {
    const {result} = this.results, {length_unit: unit} = this.meta, tables = [];
    for (const [name, title, isMoved] of [["rest", "At rest", false], ["moved", "Rigidly moved", true]]) {
      try {
        const frames = framesOf(this.texts[name] ?? "", result.frames.length);
        if (frames.length === 0) continue;
        const rows = await figuresOf(result, frames, isMoved);
        const row = ({name: quantityName, bias, noise}) => [quantityName, number(bias), number(noise),
          namesOf("displacement").includes(quantityName) ? unit : ""];
        tables.push(h("h4", {}, `${title}: ${frames.length} frames`), h("table", {class: "frames", id: `figures-${name}`},
          h("thead", {}, h("tr", {}, ["quantity", "bias", "noise", "unit"].map((head) => h("th", {scope: "col"}, head)))),
          h("tbody", {}, rows.map((figures) => h("tr", {}, row(figures).map((cell) => h("td", {}, cell)))))));
      } catch (error) {
        tables.push(h("p", {class: "problem"}, `${title}: ${error.message}`));
      }
    }
    this.metrology.replaceChildren(...tables);
  }

  #metrologySection() {
    const field = (name, label) => h("label", {class: "field"}, h("span", {}, label),
      h("input", {type: "text", id: `report-${name}`, placeholder: "none named", value: this.texts[name] ?? "",
        onchange: (event) => { this.texts[name] = event.target.value; this.onchange(); this.#drawMetrology(); }}));
    return [h("h3", {}, "Bias and noise from frames at rest and rigidly moved"),
      h("p", {class: "hint"}, "Bias: mean over the points. Noise: standard deviation over the points, of moved frames beside the rigid motion " +
        "that fits best. Numbers of the frames, as in 1-3,7. EN 4861 and VDI/VDE 2626 define other figures: EN 4861 compares with known " +
        "displacements, VDI/VDE 2626 averages over squares of points first."),
      field("rest", "at rest"), field("moved", "rigidly moved"), this.metrology];
  }

  /** The texts as they are shown, for a report that is written anew. */
  description() {
    const own = Object.fromEntries(this.meta.practice.filter(([name]) => WRITTEN.includes(name)).map(([name, value]) => [name, value ?? ""]));
    return {title: this.meta.title, note: this.meta.note ?? "", ...own, ...this.texts};
  }

  #field(name, kind, attributes) {
    const element = h(kind, {...attributes, id: `report-${name}`, value: this.description()[name] ?? "",
      onchange: () => { this.texts[name] = element.value; this.onchange(); }});
    return element;
  }

  open(meta) {
    this.meta = meta;
    $("panel-report").replaceChildren(this.#page(meta));
  }

  #practice(meta) {
    const rows = [...meta.practice];
    if (!rows.some(([name]) => name === "operator")) rows.splice(1, 0, ["operator", null]);
    return facts(rows.map(([name, value]) => [name, WRITTEN.includes(name)
      ? this.#field(name, "input", {type: "text", placeholder: "not stated", "aria-label": name}) : value ?? "not stated"]));
  }

  #page(meta) {
    const displacements = namesOf("displacement"), others = namesOf("strain", "quality"), unit = meta.length_unit;
    const frameRow = (frame, k) => h("tr", {}, [frame.number ?? k + 1, frame.name, frame.counts?.ok, frame.points_lost,
      ...[...displacements, ...others].map((name) => frame[`mean_${name}`]), frame.error ?? ""].map((value) =>
      h("td", {}, typeof value === "number" ? number(value) : value ?? "–")));
    return h("article", {class: "report"},
      h("div", {class: "row actions"},
        h("button", {type: "button", id: "print-report", onclick: () => this.print()}, "Print or save as PDF"),
        h("button", {type: "button", id: "save-report", onclick: () => this.save()}, "Save report")),
      this.#field("title", "input", {type: "text", class: "title", "aria-label": "Title"}),
      this.#field("note", "textarea", {class: "note", rows: 2, placeholder: "Notes", "aria-label": "Notes"}),
      h("h3", {}, "Fields and curves"),
      this.pictures, this.curves,
      h("h3", {}, "Test and measurement"),
      this.#practice(meta),
      h("h3", {}, "Noise floor"),
      meta.noise_floor.length > 0 ? facts(meta.noise_floor) : h("p", {}, "Not known: the record of the run is not beside the result."),
      ...(meta.corrected ? [] : this.#metrologySection()),
      h("h3", {}, "Frames"),
      h("div", {class: "scrolls"}, h("table", {class: "frames"},
        h("thead", {}, h("tr", {}, ["#", "frame", "ok", "lost", ...displacements.map((name) => `mean ${name} [${unit}]`),
          ...others.map((name) => `mean ${name}`), ""].map((title) => h("th", {scope: "col"}, title)))),
        h("tbody", {}, meta.all_frames.map(frameRow)))),
      h("h3", {}, "Every setting"),
      facts(Object.entries(meta.settings).map(([name, value]) => [name, shown(value)])),
      h("h3", {}, "Command"),
      h("pre", {}, meta.command));
  }

  /** The displacements and strains of the frame that is shown, and the curves of the probes. */
  async draw() {
    const {results} = this, {result} = results;
    if (!result || results.live || result.frames.length === 0) return;
    const request = ++this.requests, frame = results.frame, ids = [...namesOf("displacement"), ...namesOf("strain")]
      .filter((id) => available(result.meta.arrays).some((q) => q.id === id));
    const figures = [];
    for (const id of ids) {
      const picture = await fieldPicture(results, id, frame);
      if (request !== this.requests) return;
      figures.push(h("figure", {}, h("img", {src: picture, alt: quantity(id).label}),
        h("figcaption", {}, `${quantity(id).label}, ${result.frames[frame].name}`)));
    }
    this.pictures.replaceChildren(...figures);
    this.#drawCurves();
    await this.#drawMetrology();
  }

  #drawCurves() {
    const drawn = this.results.historyPlot.shown;
    this.curves.hidden = !drawn || drawn[0].length === 0;
    if (this.curves.hidden) return;
    this.plot ??= new Plot(this.canvas);
    this.plot.show(drawn[0], drawn[1]);
  }

  async print() {
    await this.draw();
    window.print();
  }
}
