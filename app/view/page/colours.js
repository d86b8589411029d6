// Colour maps that people with any colour vision read in the right order, and colours of curves and statuses.

const ANCHORS = {
  viridis: ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"],
  cividis: ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"],
  "blue-red": ["#1f4e9e", "#4e79bd", "#87a5d6", "#bccbe6", "#ebebeb", "#efc0b3", "#e08c7b", "#c85a4c", "#a51c2b"],
  grey: ["#101010", "#f4f4f4"],
};
export const MAPS = Object.keys(ANCHORS);

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** [r, g, b] at a place from 0 to 1. */
export function colourAt(name, place) {
  const anchors = anchorsOf(name).map(rgb), at = place * (anchors.length - 1);
  const k = Math.min(Math.floor(at), anchors.length - 2);
  return anchors[k].map((value, c) => Math.round(value + (at - k) * (anchors[k + 1][c] - value)));
}

/** Evenly spaced colours as CSS writes them; those between follow linearly. */
export const anchorsOf = (name) => ANCHORS[name] ?? ANCHORS.viridis;

/** 256 colours, [r, g, b] one after the other. */
export const table = (name) => Uint8Array.from(Array.from({length: 256}, (_, i) => colourAt(name, i / 255)).flat());

const LEAST_SIDE = 0.15;

/** A range well to both sides of zero is shown in a diverging map. */
export function automaticMap(range) {
  const sides = [-range.min, range.max];
  return Math.min(...sides) > LEAST_SIDE * Math.max(...sides) ? "blue-red" : "viridis";
}

/** The same range, or with zero in its middle, which is the neutral colour of a diverging map. */
export function rangeFor(map, {min, max}) {
  if (map !== "blue-red" || !(min < 0 && max > 0)) return {min, max};
  const most = Math.max(-min, max);
  return {min: -most, max: most};
}

// Okabe and Ito's colours, which differ for every kind of colour vision.
export const CURVES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#f0e442"];
export const STATUS_COLOURS = {
  ok: "#009e73", flat: "#999999", out_of_image: "#56b4e9", low_correlation: "#d55e00", not_converged: "#e69f00",
  diverged: "#cc79a7", masked: "#00000000", outlier: "#f0e442", ambiguous: "#0072b2",
};
