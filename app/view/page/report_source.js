// The data inside a report: one HTML file that needs no program. app/view/report.cpp writes what this reads.

import {historyOf, profileOf} from "dic/probe_values.js";

function bytesOf(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflated(id) {
  const stream = new Blob([bytesOf(id)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Undoes the differences along each row. */
function summedRows(differences, width, mask) {
  for (let at = 0; at < differences.length; at += width)
    for (let i = at + 1; i < at + width; ++i) differences[i] = (differences[i] + differences[i - 1]) & mask;
  return differences;
}

export class ReportSource {
  readsTables = false;

  /** html: the text of the whole file. */
  constructor(description, html = "") {
    Object.assign(this, {description, html});
  }

  get project() { return this.description.project; }

  /** The same file with another project in it. */
  report(_, project) {
    const begin = this.html.indexOf('id="report-data">') + 'id="report-data">'.length, end = this.html.indexOf("</script>", begin);
    const text = JSON.stringify({...this.description, project}).replaceAll("<", "\\u003c");
    return `<!doctype html>\n${this.html.slice(0, begin)}${text}${this.html.slice(end)}`;
  }

  async state() { return {report: true, result: true, ...this.description.state}; }
  async result() { return this.description.result; }

  /** 16 bit: all low bytes, then all high bytes, of differences along rows; 0 is a missing value. */
  async load(name, frame) {
    const bytes = await inflated(`field-${name}-${frame}`);
    const {nx} = this.description.result.grid;
    if (name === "status") return summedRows(bytes, nx, 0xff);
    const count = bytes.length / 2;
    const codes = new Uint16Array(count);
    for (let i = 0; i < count; ++i) codes[i] = bytes[i] | (bytes[count + i] << 8);
    summedRows(codes, nx, 0xffff);
    const {offset, quantum} = this.description.encoding[name][frame];
    const values = new Float32Array(count);
    for (let i = 0; i < count; ++i) values[i] = codes[i] === 0 ? NaN : offset + quantum * codes[i];
    return values;
  }

  /** The loads that came with the report. */
  readLoads({name, read}, result) {
    if (!read || (read.values && read.values.length !== result.frames.length))
      throw new Error(`A report cannot read ${name}: open the result and the table with dic view, and save the report there.`);
    return read;
  }

  history(result, kind, points, stopped) { return historyOf(result, kind, points, stopped); }
  profile(result, points, frame) { return profileOf(result, points, frame); }

  async image() {
    const {width, height, reduced} = this.description.image;
    return {width, height, reduced, values: summedRows(await inflated("image-reference"), width, 0xff)};
  }
}
