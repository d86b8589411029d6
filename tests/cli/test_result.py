"""Questions to a stored result: strain anew, probes, tables for other programs; xarray."""

import json
import shutil
import unittest

import h5py
import numpy as np

from dic_program import ProgramTest, main, speckle, write_image

try:
    import h5netcdf
    import xarray
except ImportError:
    xarray = None

STRAIN = ["exx", "eyy", "exy", "e1", "e2", "von_mises", "sigma_exx", "sigma_eyy", "sigma_exy"]


class ResultTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.sequence([(0, 0), (1.2, -0.4), (2.5, 0.3)])

    def track(self, output, *options):
        self.succeed("track", ".", "--device", "cpu", "--no-pictures", "--quiet", "-o", output, *options)
        return self.fields(output)


class Strain(ResultTest):
    def assert_same_bits(self, a, b, names=None):
        self.assertEqual(set(a), set(b))
        for name in names or a:
            self.assertEqual(a[name].tobytes(), b[name].tobytes(), name)

    def test_bits_of_track(self):
        options = ["--strain-window", "9", "--strain-measure", "hencky"]
        for more in ([], ["--order", "2", "--subset", "21"], ["--order", "auto"]):
            first = self.track("first", "--force", *more)
            self.succeed("strain", "first", *options, "-o", "other", "--force")
            expected = self.track("expected", "--force", *options, *more)
            self.assert_same_bits(self.fields("other"), expected)
            self.assertFalse(np.array_equal(first["exx"], expected["exx"], equal_nan=True))
            self.assert_same_bits(self.fields("first"), first)

    def test_bits_of_track_without_sigma_after_the_global_step(self):
        self.track("first", "--global")
        done = self.succeed("strain", "first", "--strain-window", "7", "-o", "other")
        self.assertIn("no sigma", done.stderr)
        other, expected = self.fields("other"), self.track("expected", "--global", "--strain-window", "7")
        self.assert_same_bits(other, expected, ["u", "exx", "eyy", "exy", "e1", "e2", "von_mises"])
        self.assertTrue(np.isnan(other["sigma_exx"]).all())

    def test_a_scale_leaves_the_last_digits(self):
        self.track("first", "--scale", "0.037")
        self.succeed("strain", "first", "--strain-window", "9", "-o", "other")
        other, expected = self.fields("other"), self.track("expected", "--scale", "0.037", "--strain-window", "9")
        self.assert_same_bits(other, expected, ["u", "v", "sigma_u", "displacement"])
        for name in STRAIN:
            np.testing.assert_allclose(other[name], expected[name], rtol=1e-5, atol=1e-12)

    def test_in_place_everything_says_so(self):
        before = self.track("dic_out")
        run = self.run_json()
        done = self.succeed("strain", "dic_out", "--strain-window", "7", "--strain-measure", "almansi", "--in-place")
        self.assertIn("gauge 63 px", done.stdout)
        after = self.fields()
        self.assert_same_bits(after, before, [name for name in before if name not in STRAIN])
        with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
            for group in (file, file["dic"]):
                self.assertEqual((group.attrs["strain_window"], group.attrs["strain_measure"]), (7, "almansi"))
            self.assertEqual(file["exx"].attrs["measure"], "almansi")
            settings = json.loads(file["dic/settings"][()])
            self.assertEqual((settings["strain_window"], settings["strain_measure"]), (7, "almansi"))
            self.assertIn("--in-place", file["dic/strain_command"][()].decode())
        new = self.run_json()
        self.assertEqual(new["settings"], settings)
        self.assertEqual(new["command"], run["command"])
        self.assertIn("--in-place", new["strain_command"])
        expected = self.track("expected", "--strain-window", "7", "--strain-measure", "almansi")
        self.assert_same_bits(after, expected)
        for mine, theirs in zip(new["frames"], self.run_json("expected")["frames"]):
            for name in ("mean_exx", "sd_eyy", "sigma_exy", "mean_u"):
                self.assertAlmostEqual(mine[name], theirs[name], places=12)
        self.assertEqual(new["noise_floor"], self.run_json("expected")["noise_floor"])
        self.assertEqual({path.name for path in (self.folder / "dic_out").iterdir() if path.suffix != ""},
                         {"result.vtkhdf", "run.json"})

    def test_what_makes_no_sense_is_refused(self):
        self.track("dic_out")
        self.refuse(2, ["-o", "--in-place"], "strain", "dic_out")
        self.refuse(2, ["--in-place"], "strain", "dic_out", "-o", "x", "--in-place")
        self.refuse(2, ["window", "odd"], "strain", "dic_out", "-o", "x", "--strain-window", "4")
        self.refuse(2, ["--in-place"], "strain", "dic_out", "-o", "dic_out", "--force")
        self.refuse(1, ["nothing", "no such file"], "strain", "nothing", "--in-place")
        self.refuse(1, ["frame_0.png", "no HDF5"], "strain", "frame_0.png", "--in-place")
        self.assertFalse((self.folder / "x").exists())


@unittest.skipUnless(xarray, "needs xarray and h5netcdf")
class Xarray(ResultTest):
    def test_opens_with_dimensions_and_coordinates(self):
        fields = self.track("dic_out", "--scale", "0.5")
        with xarray.open_dataset(self.folder / "dic_out/result.vtkhdf", engine="h5netcdf") as result:
            self.assertEqual(result.u.dims, ("frame", "y", "x"))
            self.assertEqual(result.displacement.dims, ("frame", "y", "x", "component"))
            self.assertEqual(set(result.coords), {"frame", "y", "x", "component", "file", "inside"})
            self.assertEqual(list(result.frame.values), [1, 2])
            self.assertEqual(list(result.file.values), ["frame_1.png", "frame_2.png"])
            self.assertEqual((result.x.attrs["units"], result.u.attrs["units"]), ("mm", "mm"))
            self.assertTrue(result.exx.attrs["long_name"])
            self.assertEqual(result.status.attrs["flag_meanings"].split()[7], "outlier")
            with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
                np.testing.assert_array_equal(result.x, file["dic/x"])
            self.assertEqual(set(result.data_vars), set(fields))
            for name, values in fields.items():
                np.testing.assert_array_equal(result[name], values)
        with xarray.open_dataset(self.folder / "dic_out/result.vtkhdf", engine="h5netcdf",
                                 group="VTKHDF/PointData") as group:
            self.assertEqual(group.u.dims, ("frame", "y", "x"))


if __name__ == "__main__":
    main()
