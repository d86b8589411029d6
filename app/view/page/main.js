// Starts the page: in the browser window of `dic view`, or as a report that stands alone.

import {isDark, onTheme, switchTheme} from "dic/theme.js";
import {CalibratePage} from "dic/calibrate_page.js";
import {CameraPage} from "dic/camera_page.js";
import {$, csv, download, openText, say} from "dic/dom.js";
import {Project} from "dic/project.js";
import {FileChooser, openTest} from "dic/file_chooser.js";
import {MatchPage} from "dic/match_page.js";
import {ReportPage} from "dic/report_page.js";
import {ReportSource} from "dic/report_source.js";
import {Result} from "dic/result.js";
import {ResultsPage} from "dic/results_page.js";
import {ServerSource} from "dic/server_source.js";
import {SetupPage} from "dic/setup_page.js";
import {stage} from "dic/stage.js";
import {TimeBar} from "dic/time_bar.js";

const FOLLOW_MS = 700;
const embedded = $("report-data");
const source = embedded ? new ReportSource(JSON.parse(embedded.textContent), document.documentElement.outerHTML) : new ServerSource();
const area = stage();
const timeBar = new TimeBar();
const project = new Project(collect, restore, () => {
  $("undo").disabled = !project.canUndo;
  $("redo").disabled = !project.canRedo;
});
const results = new ResultsPage(source, area, timeBar, () => project.changed());
const report = new ReportPage(results, {save: saveReport, onchange: () => project.changed()});
const chooser = embedded ? null : new FileChooser(source);
let setup = null;
let camera = null;
let match = null;
let calibration = null;

function collect() {
  return {settings: setup?.collect() ?? null, camera: camera?.collect() ?? null, match: match?.collect() ?? null,
    calibration: calibration?.collect() ?? null, ...results.collect(), report: report.collect()};
}

async function restore(state) {
  if (setup && state.settings) setup.restore(state.settings);
  if (camera && state.camera) camera.restore(state.camera);
  if (match && state.match) match.restore(state.match);
  if (calibration && state.calibration) await calibration.restore(state.calibration);
  report.restore(state.report ?? {});
  await results.restore(state);
}

async function saveReport() {
  try {
    say("Writing the report…");
    download("report.html", await source.report(report.description(), project.collect()), "text/html");
    say("");
  } catch (error) {
    say(error.message, "error");
  }
}

function openAny() {
  if (embedded) return openProject();
  return chooser.open("Open frames, a video or a result", {takes: ["frames", "video", "result"], others: true, use: (path) => openTest(source, path)});
}

function openProject() {
  openText(".dicproject,.json,application/json", async (content, name) => {
    $("chooser").close();
    try {
      await project.open(content);
      say(`Project of ${name}.`);
    } catch (error) {
      say(error.message, "error");
    }
  });
}

const KEPT_TAB = `dic-tab ${location.pathname}`;

/** The page that was shown before the browser loaded it again; nothing in a new window. */
function keptTab() {
  try {
    return sessionStorage.getItem(KEPT_TAB);
  } catch {
    return null;
  }
}

const scrolled = new Map();  // how far the side panel was scrolled on each page
const TABS = ["setup", "results", "match", "calibrate", "camera", "report"];

function show(name) {
  scrolled.set(document.body.dataset.tab, $("side").scrollTop);
  for (const tab of TABS) {
    $(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
    $(`panel-${tab}`).hidden = tab !== name;
  }
  $("stage").hidden = name === "report";
  timeBar.play(false);
  $("plots").hidden = name === "camera" ? !camera.hasPlot
    : name !== "results" || results.live || results.probes.all.length === 0;
  document.body.dataset.tab = name;
  $("side").scrollTop = scrolled.get(name) ?? 0;
  try {
    sessionStorage.setItem(KEPT_TAB, name);
  } catch { /* the browser keeps nothing */ }
  if (name === "setup") setup.activate();
  else if (name === "results") results.activate();
  else if (name === "camera") camera.activate();
  else if (name === "match") match.activate();
  else if (name === "calibrate") calibration.activate();
  else report.draw().catch((error) => say(error.message, "error"));
}

function enable(name) {
  const tab = $(`tab-${name}`);
  tab.hidden = false;
  tab.addEventListener("click", () => show(name));
}

async function openResult(changed = null) {
  const meta = changed ?? await source.result();
  const result = new Result(meta, (name, frame) => source.load(name, frame));
  await results.openImage();
  $("panel-results").replaceChildren(results.panel);
  $("tab-results").disabled = false;
  $("tab-report").disabled = false;
  if (!changed) show("results");
  await results.open(result, false, changed ? results.frame : undefined);
  report.open(meta);
  report.draw().catch((error) => say(error.message, "error"));
  if (!embedded) follow(result);
}

/** The frames of a result that another process still writes appear as they come. */
async function follow(result) {
  for (let {growing} = result.meta; growing;) {
    await new Promise((done) => { setTimeout(done, FOLLOW_MS); });
    if (results.result !== result) return;
    try {
      const grown = await source.grown(result.frames.length);
      growing = grown.growing;
      if (grown.frames.length > 0 && results.result === result) await results.grow(grown.frames);
      if (!growing) report.open(await source.result());
    } catch { /* it is being written: the next time */ }
  }
}

async function openLive(result) {
  results.live = true;
  $("panel-results").replaceChildren(results.panel);
  $("tab-results").disabled = false;
  if (!results.image.image) await results.openImage();
  if (document.body.dataset.tab === "setup" && !openLive.shown) show("results");
  openLive.shown = true;
  await results.open(result, true);
}

/** Measurements take this camera file. */
function useCamera(path) {
  setup.settings.set("camera", path);
  setup.settings.build();
  say(`Measurements use ${path}.`);
}

async function start() {
  const tab = keptTab();
  const state = await source.state();
  $("title").textContent = state.title;
  document.title = state.title ? `${state.title} – dic` : "dic";
  for (const tab of ["results", "report"]) enable(tab);
  $("tab-results").disabled = $("tab-report").disabled = !state.result;
  if (state.reference && !state.report) {
    enable("setup");
    setup = new SetupPage(source, state, area, timeBar, {onlive: openLive, onresult: openResult, onchange: () => project.changed()});
    setup.panel.querySelector("#run").addEventListener("click", () => { openLive.shown = false; });
    $("panel-setup").replaceChildren(setup.panel);
    await setup.open();
    show("setup");
    match = new MatchPage(source, state.frames.names, area, timeBar, chooser, () => project.changed());
    $("panel-match").replaceChildren(match.panel);
    enable("match");
  }
  if (!embedded) {
    camera = new CameraPage(source, state.options, area, timeBar, chooser, () => project.changed());
    $("panel-camera").replaceChildren(camera.panel);
    enable("camera");
    calibration = new CalibratePage(source, area, timeBar, chooser, {onuse: setup && useCamera, onchange: () => project.changed()});
    $("panel-calibrate").replaceChildren(calibration.panel);
    enable("calibrate");
  }
  if (state.result) await openResult();
  project.begin();
  if (embedded && source.project) await project.start(source.project);
  await project.restore();
  if (tab && !$(`tab-${tab}`).hidden && !$(`tab-${tab}`).disabled) show(tab);
  if (state.running) setup.watch().catch((error) => say(error.message, "error"));
}

/** True for controls in which a key writes. */
const takesText = (element) => element.matches("textarea, input:not([type=checkbox], [type=range])");

document.addEventListener("keydown", (event) => {
  if (takesText(event.target)) return;
  const key = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) {
    if (key === "z") event.shiftKey ? project.redo() : project.undo();
    else if (key === "y") project.redo();
    else return;
  } else if ((key === "," || key === ".") && timeBar.hasFrames) {
    timeBar.step(key === "." ? 1 : -1);
  } else if (key === " " && timeBar.hasFrames && !event.target.matches("button, select, summary, input")) {
    $("play").click();
  } else {
    return;
  }
  event.preventDefault();
});
$("undo").addEventListener("click", () => project.undo());
$("redo").addEventListener("click", () => project.redo());
$("save-project").addEventListener("click", () => download("test.dicproject", project.text(), "application/json"));
$("open").addEventListener("click", openAny);
$("chooser-project").addEventListener("click", openProject);
$("chooser-camera").addEventListener("click", () => { $("chooser").close(); show("camera"); });
$("save-camera").addEventListener("click", () => download("camera.csv", csv(...camera.table()), "text/csv"));
results.onstrain = openResult;
if (chooser) results.choose = (use) => chooser.open("Choose a second result", {takes: ["result"], use});
$("theme").addEventListener("click", switchTheme);
const nameTheme = () => $("theme").setAttribute("aria-label", isDark() ? "Switch to light" : "Switch to dark");
onTheme(nameTheme);
nameTheme();
$("message").addEventListener("click", () => say(""));
$("zoom-in").addEventListener("click", () => area.zoom(1.25));
$("zoom-out").addEventListener("click", () => area.zoom(0.8));
$("zoom-fit").addEventListener("click", () => area.fit());

start().then(() => {
  if (!embedded && $("tab-setup").hidden && $("tab-results").disabled && document.body.dataset.tab !== "camera") openAny();
  document.body.dataset.ready = "true"; }, (error) => say(error.message, "error"));
