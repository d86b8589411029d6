// Round numbers for scales and contour lines.

/** 1, 2 or 5 times a power of ten: the largest that is not above a value. */
export function niceBelow(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return Number((power * (value / power >= 5 ? 5 : value / power >= 2 ? 2 : 1)).toPrecision(1));
}

/** Multiples of a round step in a range, `count` or a few more: [{value, text}]. */
export function ticks(min, max, count) {
  const step = niceBelow((max - min) / count);
  if (!(step > 0)) return [];
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const text = (value) => (decimals > 6 || Math.abs(value) >= 1e6 ? value.toExponential(1) : value.toFixed(decimals));
  const all = [];
  for (let k = Math.ceil(min / step - 1e-9); k * step <= max + 1e-9 * step; ++k)
    all.push({value: k * step, text: text(k === 0 ? 0 : k * step)});
  return all;
}
