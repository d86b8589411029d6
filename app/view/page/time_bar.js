// The slider under the image: the frames of a result, or those that will be measured.

import {$} from "dic/dom.js";

export class TimeBar {
  #page = null;    // {frame, frameCount, showFrame(frame): promise}
  #wanted = null;  // the frame to be shown next; frames in between are left out where showing takes long
  #timer = null;

  constructor() {
    $("frame").addEventListener("input", (event) => this.go(Number(event.target.value)));
    $("play").addEventListener("click", () => this.play(this.#timer === null));
  }

  attach(page) {
    this.play(false);
    this.#page = page;
    this.update();
  }

  /** A page without frames is shown. */
  detach() {
    this.play(false);
    this.#page = null;
    $("time").hidden = true;
  }

  /** After the page's frame or the number of frames has changed; words: about the frame. */
  update(words = "") {
    const {frame, frameCount} = this.#page;
    $("time").hidden = false;
    for (const control of ["play", "frame", "rate"]) $(control).disabled = frameCount < 2;
    $("frame").max = Math.max(0, frameCount - 1);
    $("frame").value = frame;
    $("frame-name").textContent = words;
    $("frame-name").title = words;
  }

  async go(frame) {
    const isShowing = this.#wanted !== null, page = this.#page;
    this.#wanted = Math.min(Math.max(frame, 0), page.frameCount - 1);
    if (isShowing) return;
    try {
      for (let shown = null; shown !== this.#wanted && page === this.#page;) {
        shown = this.#wanted;
        await page.showFrame(shown);
      }
    } finally {
      this.#wanted = null;
    }
  }

  get hasFrames() { return this.#page?.frameCount > 1; }

  step(by) { return this.go((this.#wanted ?? this.#page.frame) + by); }

  play(on) {
    clearTimeout(this.#timer);
    this.#timer = null;
    $("play").textContent = on ? "❚❚" : "▶";
    $("play").setAttribute("aria-label", on ? "Pause" : "Play");
    if (!on) return;
    const next = async () => {
      const begin = performance.now();
      await this.go((this.#page.frame + 1) % this.#page.frameCount);
      if (this.#timer === null) return;
      this.#timer = setTimeout(next, Math.max(0, 1000 / Number($("rate").value) - (performance.now() - begin)));
    };
    this.#timer = setTimeout(next, 0);
  }
}
