// Quantities of a result that can be shown: the arrays of dic/schema.js, which the program writes (dic/field_schema.hpp), and what
// follows from them point by point.

import {ARRAYS} from "dic/schema.js";

const ofRole = (role) => ARRAYS.filter((array) => array.role === role);
/** Names of the arrays of some roles, role by role. */
export const namesOf = (...roles) => roles.flatMap(ofRole).map(({name}) => name);

/** Names of xx, yy and xy of the strain tensor. */
export const STRAINS = namesOf("strain");
const [XX, YY, XY] = STRAINS;

const e1 = (a, i) => (a[XX][i] + a[YY][i]) / 2 + Math.hypot((a[XX][i] - a[YY][i]) / 2, a[XY][i]);
const e2 = (a, i) => (a[XX][i] + a[YY][i]) / 2 - Math.hypot((a[XX][i] - a[YY][i]) / 2, a[XY][i]);
const vonMises = (a, i) => Math.sqrt(a[XX][i] ** 2 + a[YY][i] ** 2 - a[XX][i] * a[YY][i] + 3 * a[XY][i] ** 2);

/** Formulas of the invariants, which the program does not send: value of node i from the arrays of the strain. */
export const INVARIANTS = {e1, e2, von_mises: vonMises};

/** kind: "length", "mm", "px", "strain", "degrees", "none" or "status". value: of node i from the arrays in `needs`. */
const define = (id, label, kind, needs = [id], value = (a, i) => a[id][i]) => ({id, label, kind, needs, value});
const stored = (role) => ofRole(role).map(({name, label, unit}) => define(name, label, role === "status" ? role : unit));
const invariants = (...names) => ofRole("strain_invariant").filter(({name}) => names.includes(name))
  .map(({name, label, unit}) => define(name, label, unit, STRAINS, INVARIANTS[name]));

/** Arrays of a stereo result; positions are those in the reference. */
export const STEREO = [
  define("W", "W along Z", "mm"),
  define("U", "U along X", "mm"),
  define("V", "V along Y", "mm"),
  define("X", "X position", "mm"),
  define("Y", "Y position", "mm"),
  define("Z", "Z position", "mm"),
  ...["X", "Y", "Z", "U", "V", "W"].map((name) => define(`sigma_${name}`, `sigma_${name} predicted`, "mm")),
  define("epipolar", "distance from the epipolar line", "px"),
  define("reprojection", "reprojection error", "px"),
  define("incidence", "angle between view and surface", "degrees"),
];

export const QUANTITIES = [
  ...STEREO,
  ...stored("displacement"),
  define("d", "|d| displacement", "length", ["u", "v"], (a, i) => Math.hypot(a.u[i], a.v[i])),
  ...stored("strain"),
  ...invariants("e1", "e2"),
  define("angle", "direction of e1, from x towards y", "degrees", STRAINS,
    (a, i) => (90 / Math.PI) * Math.atan2(2 * a[XY][i], a[XX][i] - a[YY][i])),
  define("shear", "largest shear (e1 - e2) / 2", "strain", STRAINS, (a, i) => (e1(a, i) - e2(a, i)) / 2),
  ...invariants("von_mises"),
  ...stored("quality"),
  ...stored("sigma"),
  ...stored("status"),
];

export const quantity = (id) => QUANTITIES.find((q) => q.id === id);

/** The value of a quantity from the values of a probe; one that is not among them follows from u and v or the strains. */
export function ofProbe(id, values) {
  if (id in values) return values[id];
  const {needs, value} = quantity(id);
  if (!needs.every((name) => name in values)) return NaN;
  return value(Object.fromEntries(needs.map((name) => [name, [values[name]]])), 0);
}

/** The quantities whose arrays a result has. */
export const available = (arrays) => QUANTITIES.filter((q) => q.needs.every((name) => arrays.includes(name)));

export const STRAIN_UNITS = {"1": 1, "%": 100, "mm/m": 1e3, "µm/m": 1e6};

/** Factor and name of the unit that values of a quantity are shown in. */
export function unitOf(kind, lengthUnit, strainUnit) {
  if (kind === "length") return {factor: 1, name: lengthUnit};
  if (kind === "strain") return {factor: STRAIN_UNITS[strainUnit], name: strainUnit === "1" ? "" : strainUnit};
  return {factor: 1, name: {degrees: "°", mm: "mm", px: "px"}[kind] ?? ""};
}

/** The larger and the smaller principal strain. */
export const principal = (a, i) => [e1(a, i), e2(a, i)];

/** Direction of the larger principal strain, rad from x towards y. */
export const principalAngle = (a, i) => 0.5 * Math.atan2(2 * a[XY][i], a[XX][i] - a[YY][i]);
