// The options of `dic track` as a form, as TOML, and as a command line. The program says which options there are
// (app/view/track_settings.cpp).

import {h, labelled, section, select} from "dic/dom.js";
import {fromOutline, outline, parse, text} from "dic/shapes.js";

/** Options that most people change, in this order; the others are behind "More settings". */
const MAIN = ["output", "subset", "step", "order", "strain-window", "strain-measure", "reference-strategy", "search"];
/** What the page has other controls for. */
const ELSEWHERE = ["roi-polygon", "roi-hole", "scale"];
/** Names and hints of the main options, in the page's words. */
const WORDS = {
  output: ["results folder", "Folder that the results are written to"],
  subset: ["subset, px", "Side of the square around a point that is compared: odd, 7 to 255. A larger one has less noise and less detail"],
  step: ["step, px", "Distance between points; a quarter of the subset is usual"],
  order: ["shape function", "How a subset may deform: 0 it only moves, 1 it also stretches and turns, 2 it also bends; auto: 1 or 2 at each point"],
  "strain-window": ["strain window", "Points along the side of the square that a strain is fitted to: odd. With subset and step it makes the gauge length"],
  "strain-measure": ["strain measure", "What strain means: small strains are alike in all of them"],
  "reference-strategy": ["compare with", "first: the first frame. previous: the frame before. auto: a later reference as soon as points get lost"],
  search: ["search range, px", "How far from the expected place a point is looked for; auto: as far as it takes"],
};

const labelOf = (name) => WORDS[name]?.[0] ?? name.replaceAll("-", " ");
/** The program's description, in which other options have the names of this page. */
const hintOf = ({name, description}) =>
  WORDS[name]?.[1] ?? description.replace(/--([a-z][a-z-]*)/g, (_, other) => `\u201c${labelOf(other)}\u201d`);

const NOT_HERE = ["quiet", "verbose", "reference", "force"];

export class Settings {
  values = new Map();  // values that differ from their defaults

  /** prefix: of the controls' ids. */
  constructor(options, onchange, prefix = "option") {
    this.prefix = prefix;
    this.options = options.filter((option) => !NOT_HERE.includes(option.name));
    this.onchange = onchange;
    this.form = h("div", {class: "form"});
    this.build();
  }

  option(name) { return this.options.find((option) => option.name === name); }
  value(name) { return this.values.get(name) ?? this.option(name)?.default ?? ""; }

  set(name, value) {
    const option = this.option(name);
    const same = Array.isArray(value) ? value.length === 0
      : option?.flag ? !value : value === "" || String(value) === option?.default;
    same ? this.values.delete(name) : this.values.set(name, value);
    this.onchange(name);
  }

  /** Length of the virtual strain gauge, px; NaN while a number is missing. */
  gauge() {
    const [window, step, subset] = ["strain-window", "step", "subset"].map((name) => Number(this.value(name)));
    return (window - 1) * step + subset;
  }

  /** Of a whole file: what it does not name has its default. */
  load(values) {
    this.values = new Map(Object.entries(values));
    this.build();
    this.onchange();
  }

  build() {
    const shown = this.options.filter((option) => option.shown && !ELSEWHERE.includes(option.name));
    const groups = new Map();
    for (const option of shown.filter((o) => !MAIN.includes(o.name)))
      groups.set(option.group, [...(groups.get(option.group) ?? []), option]);
    const main = MAIN.map((name) => shown.find((o) => o.name === name)).filter(Boolean);
    this.form.replaceChildren(
      ...main.map((option) => this.#control(option)),
      ...[...groups].map(([group, options]) =>
        section(`More: ${group}`, false, ...options.map((option) => this.#control(option)))));
  }

  #control(option) {
    const {name, choices, flag} = option;
    const set = (value) => this.set(name, value);
    const id = `${this.prefix}-${name}`;
    if (flag) {
      const box = h("input", {type: "checkbox", id, checked: this.values.get(name) === true,
        onchange: (event) => set(event.target.checked)});
      return h("label", {class: "check", title: hintOf(option)}, box, h("span", {}, labelOf(name)));
    }
    const value = String(this.value(name));
    const control = choices.length > 0
      ? select(choices.map((choice) => [choice, choice]), value, set, {id})
      : h("input", {type: "text", id, value, spellcheck: false, onchange: (event) => set(event.target.value.trim())});
    return labelled(labelOf(name), control, hintOf(option));
  }

  // Files and command -----------------------------------------------------------------------------

  setShapes(shapes) {
    const lines = (hole) => shapes.filter((s) => s.hole === hole).map((s) => text(outline(s)));
    for (const [name, hole] of [["roi-polygon", false], ["roi-hole", true]])
      lines(hole).length > 0 ? this.values.set(name, lines(hole)) : this.values.delete(name);
  }

  shapes() {
    return [["roi-polygon", false], ["roi-hole", true]].flatMap(([name, hole]) =>
      [this.values.get(name) ?? []].flat().map(parse).filter(Boolean).map((corners) => fromOutline(corners, hole)));
  }

  toml() {
    return [...this.values].map(([name, value]) => `${name} = ${this.#tomlValue(name, value)}\n`).join("");
  }

  #tomlValue(name, value) {
    if (Array.isArray(value)) return `[${value.map(quoted).join(", ")}]`;
    if (typeof value === "boolean") return String(value);
    return /^-?\d+(\.\d+)?$/.test(value) ? String(value) : quoted(String(value));
  }

  command(frames) {
    const words = ["dic", "track", ...frames];
    for (const [name, value] of this.values)
      for (const one of [value].flat()) words.push(`--${name}`, ...(one === true ? [] : [String(one)]));
    return words.map(forShell).join(" ");
  }
}

const quoted = (text) => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
const forShell = (word) => (/^[\w\-./:,=+@%]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
