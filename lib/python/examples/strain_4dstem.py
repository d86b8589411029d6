"""A strain map from diffraction discs: a synthetic 4D-STEM scan, its disc positions, the lattice at every place."""

import itertools

import numpy as np

import dic

SCAN, SIZE, RADIUS, COUNTS = (8, 12), 128, 5, 30  # scan positions, px of a pattern, disc radius (px), electrons per px
centre = np.array([64.0, 64.0])
lattice = np.array([[24.0, 3.0], [-3.0, 24.0]])  # rows: reciprocal vectors g1, g2 (x, y), px
orders = np.array([o for o in itertools.product((-2, -1, 0, 1, 2), repeat=2) if abs(o[0]) + abs(o[1]) <= 3])
y, x = np.mgrid[0:SIZE, 0:SIZE]
random = np.random.default_rng(7)


def disc(dx, dy):
    return np.clip(RADIUS - np.hypot(dx, dy) + 0.5, 0, 1)


# Strain of the crystal: exx grows along the scan, eyy falls. Reciprocal vectors change the other way round.
rows, columns = np.mgrid[0:SCAN[0], 0:SCAN[1]]
exx, eyy = 0.02 * columns / SCAN[1], -0.01 * rows / SCAN[0]
patterns = []
for ex, ey in zip(exx.ravel(), eyy.ravel()):
    g = lattice / (1 + np.array([ex, ey]))
    image = sum(COUNTS * disc(x - px, y - py) for px, py in centre + orders @ g)
    patterns.append(random.poisson(image + 1).astype(np.uint16))

# The template is the empty beam: one disc with some surroundings.
half = RADIUS + 4
v, u = np.mgrid[-half:half + 1, -half:half + 1]
template = np.round(1000 * disc(u, v)).astype(np.uint16)
found = dic.best_peaks(template, np.stack(patterns), count=len(orders), distance=2 * RADIUS, least_score=0.5,
                       pairing="one_to_many")

# Each pattern's lattice is a weighted least-squares fit of centre + orders @ g to its discs.
strain = np.empty((len(patterns), 2))
for k in range(len(patterns)):
    peak = found.isel(pair=k, rank=found.found.values[k])
    place = np.stack([peak.subpixel_dx + half, peak.subpixel_dy + half], axis=1)
    index = np.rint((place - centre) @ np.linalg.inv(lattice))
    weight = 1 / np.hypot(peak.sigma_dx.values, peak.sigma_dy.values)[:, None]
    design = np.column_stack([np.ones(len(index)), index])
    fit = np.linalg.lstsq(weight * design, weight * place, rcond=None)[0]
    # g = lattice @ inv(1 + strain), so that the strain follows from the two lattices.
    strain[k] = np.diag(np.linalg.inv(np.linalg.inv(lattice) @ fit[1:])) - 1

error = strain - np.column_stack([exx.ravel(), eyy.ravel()])
print("discs per pattern:", int(found.found.sum("rank").min()), "to", int(found.found.sum("rank").max()), "of", len(orders))
print("standard deviation of a disc, px:", float(np.median(found.sigma_dx.values[found.found.values])).__round__(3))
print("rms error of exx, eyy:", np.sqrt((error ** 2).mean(axis=0)).round(5).tolist())
np.savetxt("exx.csv", strain[:, 0].reshape(SCAN), delimiter=",", fmt="%.5f")
