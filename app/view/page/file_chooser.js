// The dialog that lists the folders the program may read: frames, a video or a result to open.

import {$, h, say} from "dic/dom.js";

export class FileChooser {
  #folder = "";
  #use = null;
  #takes = [];

  constructor(source) {
    this.source = source;
    $("chooser-close").addEventListener("click", () => $("chooser").close());
    $("chooser-up").addEventListener("click", () => this.#list(this.#parent));
    $("chooser-this").addEventListener("click", () => this.#choose(this.#folder));
  }

  #parent = "";

  /**
   * takes: what can be chosen: "frames" (the images of a folder), "video", "result", "image", "calibration". others: offers a project and a
   * camera as well. use(path): takes what was chosen; a failure is said in the dialog's page.
   */
  async open(title, {takes, others = false, use}) {
    this.#use = use;
    this.#takes = takes;
    $("chooser-title").textContent = title;
    for (const other of ["chooser-project", "chooser-camera"]) $(other).hidden = !others;
    $("chooser").showModal();
    await this.#list(this.#folder);
  }

  async #choose(path) {
    try {
      await this.#use(path);
      $("chooser").close();
    } catch (error) {
      $("chooser-problem").textContent = error.message;
    }
  }

  async #list(folder) {
    $("chooser-problem").textContent = "";
    try {
      const listed = await this.source.folder(folder);
      this.#folder = listed.folder;
      this.#parent = listed.parent;
      this.#show(listed);
    } catch (error) {
      $("chooser-problem").textContent = error.message;
    }
  }

  #show({folder, parent, images, is_result: isResult, entries}) {
    $("chooser-folder").textContent = folder;
    $("chooser-up").disabled = parent === "";
    const canOpen = {result: isResult, frames: images > 1};
    const kind = ["result", "frames"].find((one) => canOpen[one] && this.#takes.includes(one));
    $("chooser-this").textContent = kind === "result" ? "Open this result" : `Open the ${images} images of this folder`;
    $("chooser-this").hidden = !kind;
    const listed = entries.filter((entry) => entry.kind === "folder" || this.#takes.includes(entry.kind));
    $("chooser-list").replaceChildren(...listed.map(({name, path, kind}) => h("li", {},
      h("button", {type: "button", "data-name": name, onclick: () => (kind === "folder" ? this.#list(path) : this.#choose(path))},
        name, h("small", {}, kind)))));
    if (listed.length === 0 && !kind) $("chooser-list").replaceChildren(h("li", {class: "hint"}, "Nothing that could be chosen is in here."));
  }
}

/** Opens another test in this window: what was set for the one before does not belong to it. */
export async function openTest(source, path) {
  await source.open(path);
  try {
    sessionStorage.clear();
  } catch { /* the browser keeps nothing */ }
  say("");
  location.reload();
}
