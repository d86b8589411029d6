"""First run: a sequence of images with known motion, measured, compared with the truth, and saved."""

import numpy as np

import dic

# Five frames of a specimen that is stretched by 2 % along x. With images of your own:
# ds = dic.track("frames/*.png", subset=21, step=5).
made = dic.synth(width=256, height=256, frames=5, motion="affine", ux=0.02, noise=2, seed=1)
ds = dic.track(made.image.values, subset=21, step=5)
print(ds)

measured = ds.where(ds.status == dic.Status.ok)
print("mean strain along x by frame:", np.round(measured.exx.mean(("y", "x")).values, 5))
print("its predicted noise at a point:", float(measured.sigma_exx.mean()))

truth = made.u.sel(frame=ds.frame, y=ds.y, x=ds.x)
error = (measured.u - truth).where(ds.exx.notnull())
print(f"displacement: {float(np.sqrt((error**2).mean())):.4f} px from the truth (root mean square)")

ds.to_dataframe().to_csv("points.csv")
