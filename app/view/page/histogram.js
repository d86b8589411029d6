// How often the values of a frame occur, in the colours of the field.

import {colourAt} from "dic/colours.js";
import {ticks} from "dic/ticks.js";

const BINS = 60;
const BELOW = 18;  // screen px for the numbers below the bars

/** Counts in bins of equal width; values outside of the range go to no bin. */
export function countsOf(values, {min, max}, bins = BINS) {
  const counts = new Array(bins).fill(0), factor = bins / (max - min);
  for (const value of values)
    if (value >= min && value <= max) ++counts[Math.min(Math.floor((value - min) * factor), bins - 1)];
  return counts;
}

/** factor: to the unit that is shown. */
export function drawHistogram(canvas, values, range, map, factor) {
  const density = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!(width > 0 && height > 0)) return;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  const context = canvas.getContext("2d");
  context.scale(density, density);
  const counts = values ? countsOf(values, range) : [], most = Math.max(...counts, 1), bar = width / BINS;
  counts.forEach((count, k) => {
    const tall = ((height - BELOW) * count) / most;
    context.fillStyle = `rgb(${colourAt(map, (k + 0.5) / BINS).join(" ")})`;
    context.fillRect(k * bar, height - BELOW - tall, bar - 0.5, tall);
  });
  canvas.dataset.counts = JSON.stringify(counts);
  const style = getComputedStyle(canvas);
  context.fillStyle = style.getPropertyValue("--soft").trim();
  context.fillRect(0, height - BELOW, width, 1);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  if (!values) return;
  for (const {value, text} of ticks(range.min * factor, range.max * factor, 4)) {
    const x = ((value / factor - range.min) / (range.max - range.min)) * width;
    if (x > 12 && x < width - 12) context.fillText(text, x, height - 4);
  }
}
