// The project: all that the user has set, drawn and written. It can be undone and redone, kept over a reload, saved as a file and opened again.

const FORMAT = "dic project 1";
const MOST_STEPS = 200;

export class Project {
  #past = [];
  #future = [];
  #now = "";
  #isBusy = true;  // until begin(): what the page builds by itself is no change
  #key = `dic-project ${location.pathname}`;

  /** collect(): an object that JSON can hold; apply(object): a promise, after which collect() returns that object. */
  constructor(collect, apply, onchange) {
    Object.assign(this, {collect, apply, onchange});
  }

  /** The present state becomes the one that undoing ends at. */
  begin() {
    this.#isBusy = false;
    this.#past = [];
    this.#future = [];
    this.#now = JSON.stringify(this.collect());
    this.onchange();
  }

  /** To be called after every change; calls that changed nothing are no step. */
  changed() {
    if (this.#isBusy) return;
    const now = JSON.stringify(this.collect());
    if (now === this.#now) return;
    this.#past.push(this.#now);
    if (this.#past.length > MOST_STEPS) this.#past.shift();
    this.#future = [];
    this.#now = now;
    this.#keep();
    this.onchange();
  }

  get canUndo() { return this.#past.length > 0; }
  get canRedo() { return this.#future.length > 0; }
  undo() { return this.#travel(this.#past, this.#future); }
  redo() { return this.#travel(this.#future, this.#past); }

  async #travel(from, to) {
    if (from.length === 0 || this.#isBusy) return;
    to.push(this.#now);
    await this.#goTo(JSON.parse(from.pop()));
  }

  async #goTo(state) {
    this.#isBusy = true;
    try {
      await this.apply(state);
    } finally {
      this.#isBusy = false;
      this.#now = JSON.stringify(this.collect());
      this.#keep();
      this.onchange();
    }
  }

  // Reload ----------------------------------------------------------------------------------------

  #keep() {
    try {
      sessionStorage.setItem(this.#key, this.#now);
    } catch { /* more than the browser keeps: it is still in the file that the user saves */ }
  }

  /** Goes on where the page was before it was loaded again. */
  async restore() {
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(this.#key));
    } catch { /* nothing was kept */ }
    if (kept) await this.#goTo(kept);
  }

  // File ------------------------------------------------------------------------------------------

  text() { return `${JSON.stringify({format: FORMAT, ...this.collect()}, null, 2)}\n`; }

  /** The state that a report was saved with: nothing to undo. */
  async start(state) {
    await this.#goTo(state);
    this.begin();
  }

  /** Takes a project file over, as one step that can be undone. Throws Error, a sentence, for any other text. */
  async open(text) {
    let state = null;
    try {
      state = JSON.parse(text);
    } catch { /* said below */ }
    if (state?.format !== FORMAT) throw new Error("This file is not a project that was saved here.");
    delete state.format;
    const before = this.#now;
    await this.#goTo(state);
    this.#past.push(before);
    this.#future = [];
    this.onchange();
  }
}
