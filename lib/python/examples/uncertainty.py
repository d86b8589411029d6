"""Uncertainty: the noise that dic predicts for every point, against the noise of a specimen at rest."""

import numpy as np

import dic

# A specimen at rest: only the camera's noise differs from frame to frame.
rest = dic.synth(width=256, height=256, frames=6, noise=3, seed=5)

print("subset  window  gauge px   sd of u  predicted   sd of exx  predicted")
for subset in (15, 21, 31):
    ds = dic.track(rest.image.values, subset=subset, step=5, prefilter="none")
    ds = ds.where(ds.status == dic.Status.ok)
    for window in (5, 11):
        strain = dic.strain(ds.assign(status=ds.status.fillna(6).astype(np.uint8)), window)
        gauge = (window - 1) * 5 + subset
        print(f"{subset:6d} {window:7d} {gauge:9d} {float(ds.u.std()):9.4f} {float(ds.sigma_u.mean()):10.4f}"
              f" {float(strain.exx.std()):11.2e} {float(strain.sigma_exx.mean()):10.2e}")

# The smallest subset for a noise that you can live with, chosen from the reference.
tracker = dic.Tracker(rest.image.values[0], sigma_target=0.01, noise=3)
print("for 0.01 px:", tracker.options["subset"], "px")
