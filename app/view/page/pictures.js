// Fields as pictures and films, drawn as the page shows them.

import {automaticMap, rangeFor} from "dic/colours.js";
import {FieldLayer, LegendLayer} from "dic/layers.js";
import {quantity} from "dic/quantities.js";

const WIDTH = 460, BESIDE = 134, LEAST_HEIGHT = 200;  // px of a picture; of the colour bar in it
const CODING_MS = 300;  // for the last frame of a film to arrive
const DENSITY = 2;  // pixels per px, for paper

/** A quantity over the reference image, on white, as the address of a PNG. */
export async function fieldPicture(results, id, frame) {
  const {result, image, look} = results, q = quantity(id), unit = results.unit(q.kind);
  const values = await result.values(id, frame), found = await result.rangeOf(id, frame);
  const map = look.map === "auto" ? automaticMap(found) : look.map, range = rangeFor(map, found);
  const {width, height} = result.meta.image, scale = Math.min((WIDTH - BESIDE) / width, WIDTH / height);
  const area = {width: scale * width + BESIDE, height: Math.max(scale * height, LEAST_HEIGHT),
    view: {scale, x: scale / 2, y: scale / 2}};
  const canvas = new OffscreenCanvas(Math.round(DENSITY * area.width), Math.round(DENSITY * area.height));
  const context = canvas.getContext("2d");
  context.scale(DENSITY, DENSITY);
  context.fillStyle = "#fff";
  context.fillRect(0, 0, area.width, area.height);
  const field = new FieldLayer(), legend = new LegendLayer();
  field.opacity = look.opacity;
  field.smooth = look.smooth;
  field.set(result.grid, values, {range, map, names: null});
  legend.isOnPaper = true;
  legend.set({title: `${id}${unit.name ? ` [${unit.name}]` : ""}`, map, names: null,
    range: {min: range.min * unit.factor, max: range.max * unit.factor},
    scale: {mmPerPx: result.scale, unit: result.meta.length_unit}});
  for (const layer of [image, field, legend]) {
    context.save();
    if (layer.inImage) context.transform(scale, 0, 0, scale, area.view.x, area.view.y);
    layer.draw(context, area);
    context.restore();
  }
  return dataUrl(await canvas.convertToBlob({type: "image/png"}));
}

function dataUrl(blob) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(new Error("A picture could not be made."));
    reader.readAsDataURL(blob);
  });
}

function nextPictureDrawn() {
  return new Promise((drawn) => { requestAnimationFrame(() => requestAnimationFrame(drawn)); });
}

/**
 * A film of what the canvas shows in each frame, on a background, so many frames per second. show(frame): a promise. Throws Error, a sentence,
 * where the browser makes none.
 */
export async function film(canvas, background, count, perSecond, show) {
  const sheet = document.createElement("canvas"), context = sheet.getContext("2d");
  sheet.width = canvas.width & ~1;  // coders want even sizes
  sheet.height = canvas.height & ~1;
  const type = ["video/webm;codecs=vp9", "video/webm", "video/mp4"].find((one) => globalThis.MediaRecorder?.isTypeSupported(one));
  if (!type || !sheet.captureStream) throw new Error("This browser makes no video: save pictures instead.");
  const stream = sheet.captureStream(), [track] = stream.getVideoTracks();
  const recorder = new MediaRecorder(stream, {mimeType: type, videoBitsPerSecond: 16e6}), parts = [];
  recorder.ondataavailable = ({data}) => parts.push(data);
  const ended = new Promise((done) => { recorder.onstop = done; });
  recorder.start();
  for (let frame = 0; frame <= count; ++frame) {  // the last one is shown as long as the others
    const next = performance.now() + 1000 / perSecond;
    await show(Math.min(frame, count - 1));
    await nextPictureDrawn();
    context.fillStyle = background;
    context.fillRect(0, 0, sheet.width, sheet.height);
    context.drawImage(canvas, 0, 0);
    await nextPictureDrawn();  // the stream takes the sheet then: a busy browser would leave frames out
    await new Promise((passed) => { setTimeout(passed, next - performance.now()); });
  }
  await new Promise((passed) => { setTimeout(passed, CODING_MS); });
  recorder.stop();
  await ended;
  track.stop();
  return {blob: new Blob(parts, {type}), ending: type.startsWith("video/mp4") ? "mp4" : "webm"};
}
