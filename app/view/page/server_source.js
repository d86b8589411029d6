// The program that shows this page, asked over the loopback address. Addresses are relative: the token is part
// of the page's own.

const GONE = "The program behind this page does not answer: it has ended, or its connection is cut. Start it again; " +
  "save the project first to keep what is here.";

async function ask(path, options = {}) {
  const answer = await fetch(path, {cache: "no-store", ...options}).catch(() => { throw new Error(GONE); });
  if (answer.ok) return answer;
  let text = `The program answered ${answer.status}.`;
  try {
    text = (await answer.json()).error ?? text;
  } catch { /* no JSON */ }
  throw new Error(text);
}

const LARGEST = 16 << 20;  // bytes that the program takes, kLargestBody in app/view/server.cpp

async function post(path, content) {
  const body = new Blob([JSON.stringify(content)], {type: "application/json"});
  if (body.size > LARGEST)
    throw new Error(`That is more than the ${LARGEST >> 20} MiB that this page can send: choose a smaller file.`);
  return ask(path, {method: "POST", headers: {"Content-Type": "application/json"}, body});
}

/** The values of an array at all nodes. */
async function values(name, path) {
  const bytes = await (await ask(path)).arrayBuffer();
  return name === "status" ? new Uint8Array(bytes) : new Float32Array(bytes);
}

export class ServerSource {
  readsTables = true;

  async state() { return (await ask("api/state")).json(); }
  async result() { return (await ask("api/result")).json(); }

  /** Of a result that grows: {growing, frames: those from number `from` on}. */
  async grown(from) { return (await ask(`api/grown/${from}`)).json(); }

  load(name, frame) { return values(name, `api/field/${name}/${frame}`); }

  /** which: "reference" or the number of a current frame. {width, height, reduced, values} */
  image(which) { return this.#image(`api/image/${which}`); }

  #image(path) { return this.#read(ask(path)); }

  async #read(answering) {
    const answer = await answering;
    const header = (name) => Number(answer.headers.get(name));
    const bytes = await answer.arrayBuffer();
    const kinds = {u8: Uint8Array, u16: Uint16Array, f32: Float32Array};
    return {
      width: header("X-Width"), height: header("X-Height"), reduced: header("X-Reduced"),
      values: new kinds[answer.headers.get("X-Type")](bytes),
    };
  }

  /** An image of the frames that were named. */
  frame(index) { return this.#image(`api/frame/${index}`); }

  /** Values of a probe in all frames, by dic/probe.hpp: [{name: value, ..., problem}]. */
  async history(result, kind, points) { return (await this.#probe({kind, points})).frames; }
  /** The points of a line in one frame: [{distance, name: value, ...}]. */
  async profile(result, points, frame) { return (await this.#probe({kind: "line", points, frame})).points; }

  async #probe(asked) {
    const answer = await post("api/probe", {...asked, points: asked.points.map(({x, y}) => [x, y])});
    return JSON.parse(await answer.text(), (key, value) => value ?? NaN);
  }

  /** The loads of a table for the frames of the result, as view/loads_answer.hpp answers. */
  async readLoads({name, text, column, area}) { return (await post("api/loads", {name, text, column, area})).json(); }

  /** The names and values of the options in the text of a TOML file. */
  async readSettings(text) { return (await post("api/settings", {toml: text})).json(); }
  /** strain_sigma: the noise of strain that a recommended gauge has to reach. */
  async preview(toml, strain_sigma) { return (await post("api/preview", {toml, strain_sigma})).json(); }
  /** The shown result with another strain, as result() describes it. */
  async strain(window, measure) { return (await post("api/strain", {window, measure})).json(); }
  async keepStrain() { return (await post("api/keep-strain", {})).json(); }
  /** {folder, parent, images, is_result, entries: [{name, path, kind}]} of a folder that the program may read. */
  async folder(folder) { return (await post("api/folder", {folder})).json(); }
  async open(path) { return (await post("api/open", {path})).json(); }
  /** A second result to compare with, as result() describes it. */
  async openOther(path) { return (await post("api/other", {path})).json(); }
  loadOther(name, frame) { return values(name, `api/other/${name}/${frame}`); }
  /** The bytes of a report of the shown result. */
  async report(description, project) { return (await post("api/report", {description, project})).arrayBuffer(); }
  /** The ROI of these settings, a byte per pixel of the reference. */
  async mask(toml) { return new Uint8Array(await (await post("api/mask", {toml})).arrayBuffer()); }
  async run(toml, force) { return (await post("api/run", {toml, force})).json(); }
  async cancel() { return (await post("api/cancel", {})).json(); }
  async progress() { return (await ask("api/run")).json(); }
  /** What view/template_search.hpp takes and answers. */
  async match(asked) { return (await post("api/match", asked)).json(); }
  /** The image of a template. */
  template(named) { return this.#read(post("api/template", named)); }

  /** What view/calibration_run.hpp takes and answers. */
  async targets(asked) { return (await post("api/targets", asked)).json(); }
  targetImage(index) { return this.#image(`api/target/${index}`); }
  async calibrate(asked) { return (await post("api/calibrate", asked)).json(); }
  async keepCamera(path, force) { return (await post("api/keep-camera", {path, force})).json(); }

  /** {cameras: [{id, address, protocol, vendor, model, serial}], problems}. */
  async cameras() { return (await ask("api/cameras")).json(); }
  /** asked: as view/camera_run.hpp takes it, here and in cameraMeasure(). */
  async cameraLook(asked) { return (await post("api/camera-look", asked)).json(); }
  async cameraMeasure(asked) { return (await post("api/camera-measure", asked)).json(); }
  async cameraStop() { return (await post("api/camera-stop", {})).json(); }
  /** What the camera does, and the strains from result `from` on. */
  async cameraProgress(from) { return (await ask(`api/camera/${from}`)).json(); }
  cameraImage() { return this.#image("api/camera/image"); }
  rightCameraImage() { return this.#image("api/camera/right"); }
  async cameraField() { return (await ask("api/camera/field")).json(); }
  loadCameraField(name) { return values(name, `api/camera/field/${name}`); }

  async live() { return (await ask("api/live")).json(); }

  loadLive(name) { return values(name, `api/live/${name}`); }
}
