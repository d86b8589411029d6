// What can be shown of a result: stored arrays, and what follows from them point by point.

const e1 = (a, i) => (a.exx[i] + a.eyy[i]) / 2 + Math.hypot((a.exx[i] - a.eyy[i]) / 2, a.exy[i]);
const e2 = (a, i) => (a.exx[i] + a.eyy[i]) / 2 - Math.hypot((a.exx[i] - a.eyy[i]) / 2, a.exy[i]);
const strains = ["exx", "eyy", "exy"];

export const vonMises = (a, i) => Math.sqrt(a.exx[i] ** 2 + a.eyy[i] ** 2 - a.exx[i] * a.eyy[i] + 3 * a.exy[i] ** 2);

/** kind: "length", "strain", "degrees", "plain" or "status". value: of node i from the arrays in `needs`. */
const define = (id, label, kind, needs = [id], value = (a, i) => a[id][i]) => ({id, label, kind, needs, value});

export const QUANTITIES = [
  define("u", "u (to the right)", "length"),
  define("v", "v (down)", "length"),
  define("d", "|d| displacement", "length", ["u", "v"], (a, i) => Math.hypot(a.u[i], a.v[i])),
  define("exx", "exx strain", "strain"),
  define("eyy", "eyy strain", "strain"),
  define("exy", "exy shear strain (tensor)", "strain"),
  define("e1", "e1 larger principal strain", "strain", strains, e1),
  define("e2", "e2 smaller principal strain", "strain", strains, e2),
  define("angle", "direction of e1, from x towards y", "degrees", strains,
    (a, i) => (90 / Math.PI) * Math.atan2(2 * a.exy[i], a.exx[i] - a.eyy[i])),
  define("shear", "largest shear (e1 - e2) / 2", "strain", strains, (a, i) => (e1(a, i) - e2(a, i)) / 2),
  define("von_mises", "von Mises strain", "strain", strains, vonMises),
  define("zncc", "zncc correlation", "plain"),
  define("sigma_u", "sigma_u predicted", "length"),
  define("sigma_v", "sigma_v predicted", "length"),
  define("sigma_exx", "sigma_exx predicted", "strain"),
  define("sigma_eyy", "sigma_eyy predicted", "strain"),
  define("sigma_exy", "sigma_exy predicted", "strain"),
  define("status", "status", "status"),
];

export const quantity = (id) => QUANTITIES.find((q) => q.id === id);

/** Of the values of a probe by their names; what is not among them follows from u and v, or from the strains. */
export function ofProbe(id, values) {
  if (id in values) return values[id];
  const {needs, value} = quantity(id);
  return value(Object.fromEntries(needs.map((name) => [name, [values[name]]])), 0);
}

/** Those whose arrays a result has. */
export const available = (arrays) => QUANTITIES.filter((q) => q.needs.every((name) => arrays.includes(name)));

export const STRAIN_UNITS = {"1": 1, "%": 100, "mm/m": 1e3, "µm/m": 1e6};

/** Factor and name of the unit that values of a quantity are shown in. */
export function unitOf(kind, lengthUnit, strainUnit) {
  if (kind === "length") return {factor: 1, name: lengthUnit};
  if (kind === "strain") return {factor: STRAIN_UNITS[strainUnit], name: strainUnit === "1" ? "" : strainUnit};
  return {factor: 1, name: kind === "degrees" ? "°" : ""};
}

/** The larger and the smaller principal strain. */
export const principal = (a, i) => [e1(a, i), e2(a, i)];

/** Direction of the larger one, rad from x towards y. */
export const principalAngle = (a, i) => 0.5 * Math.atan2(2 * a.exy[i], a.exx[i] - a.eyy[i]);
