// The text of a report: what the iDICs Good Practices Guide asks a DIC report to state, every setting, the frames.

import {h, number} from "dic/dom.js";
import {namesOf} from "dic/quantities.js";
import {facts} from "dic/setup_page.js";

const shown = (value) => (value === null ? "none" : typeof value === "object" ? JSON.stringify(value) : String(value));

export function reportPage(meta) {
  const displacements = namesOf("displacement"), others = namesOf("strain", "quality");
  const frameRow = (frame, k) => h("tr", {}, [frame.number ?? k + 1, frame.name, frame.counts?.ok, frame.points_lost,
    ...[...displacements, ...others].map((name) => frame[`mean_${name}`]), frame.error ?? ""].map((value) =>
    h("td", {}, typeof value === "number" ? number(value) : value ?? "–")));
  const unit = meta.length_unit;
  return h("article", {class: "report"},
    h("h2", {}, meta.title),
    meta.note ? h("p", {class: "note"}, meta.note) : null,
    h("h3", {}, "Test and measurement"),
    facts(meta.practice.map(([name, value]) => [name, value ?? "not stated"])),
    h("h3", {}, "Noise floor"),
    meta.noise_floor.length > 0 ? facts(meta.noise_floor) : h("p", {}, "Not known: run.json is not beside the result."),
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
