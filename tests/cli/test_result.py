"""Questions to a stored result: strain anew, probes, tables for other programs; xarray."""

import csv
import json
import resource
import unittest
import zipfile

import h5py
import numpy as np

from dic_program import ProgramTest, main

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

    def test_bits_of_track_after_the_global_step(self):
        self.track("first", "--global")
        self.succeed("strain", "first", "--strain-window", "7", "-o", "other")
        other, expected = self.fields("other"), self.track("expected", "--global", "--strain-window", "7")
        self.assert_same_bits(other, expected, ["u", *STRAIN])

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
                         {"result.vtkhdf", "run.json", ".dic-frames.jsonl"})

    def test_what_makes_no_sense_is_refused(self):
        self.track("dic_out")
        self.refuse(2, ["-o", "--in-place"], "strain", "dic_out")
        self.refuse(2, ["--in-place"], "strain", "dic_out", "-o", "x", "--in-place")
        self.refuse(2, ["window", "odd"], "strain", "dic_out", "-o", "x", "--strain-window", "4")
        self.refuse(2, ["--in-place"], "strain", "dic_out", "-o", "dic_out", "--force")
        self.refuse(1, ["nothing", "no such file"], "strain", "nothing", "--in-place")
        self.refuse(1, ["frame_0.png", "no HDF5"], "strain", "frame_0.png", "--in-place")
        self.assertFalse((self.folder / "x").exists())


class Probe(ResultTest):
    def read_csv(self, name):
        with open(self.folder / name, newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))

    def test_tables_hold_the_motion(self):
        self.track("dic_out", "--scale", "0.5")
        (self.folder / "machine.csv").write_text("frame;Force [kN]\n1;0,5\n2;1,5\n")
        done = self.succeed("probe", "dic_out", "--point", "60,50", "--point", "3,3", "--extensometer", "30,60,110,60",
                            "--line", "40,40,80,70", "--area", "40,40 90,40 90,90 40,90", "--loads", "machine.csv",
                            "--section", "10")
        self.assertIn("150", done.stdout)
        self.assertIn("point 2 has no values in 2 of 2 frames: the point (0, 0) beside it is out_of_image", done.stderr)
        rows = self.read_csv("dic_probe/history.csv")
        self.assertEqual([row["file"] for row in rows], ["frame_1.png", "frame_2.png"])
        self.assertEqual([float(row["stress [MPa]"]) for row in rows], [50, 150])
        for row, (u, v) in zip(rows, [(1.2, -0.4), (2.5, 0.3)]):
            self.assertAlmostEqual(float(row["P1 u [mm]"]), u / 2, delta=0.01)
            self.assertAlmostEqual(float(row["A1 mean v [mm]"]), v / 2, delta=0.01)
            self.assertAlmostEqual(float(row["E1 gauge length [mm]"]), 40)
            self.assertLess(abs(float(row["E1 strain"])), 5 * float(row["E1 sigma_strain"]) + 1e-4)
            self.assertEqual((row["P2 u [mm]"], row["P1 problem"]), ("nan", ""))
            self.assertEqual(int(row["A1 nodes"]), int(row["A1 points"]))
        self.assertGreater((self.folder / "dic_probe/history.png").stat().st_size, 5000)
        line = self.read_csv("dic_probe/lines.csv")
        self.assertEqual(len(line), 2 * 11)
        self.assertEqual([float(line[10][name]) for name in ("distance [mm]", "x [px]", "y [px]")], [25, 80, 70])
        answer = json.loads((self.folder / "dic_probe/probe.json").read_text())
        self.assertEqual(answer["extensometers"], [[[30, 60], [110, 60]]])
        frame = answer["frames"][1]
        self.assertEqual((frame["load"], frame["stress"]), (1500, 150))
        self.assertAlmostEqual(frame["points"][0]["u"], float(rows[1]["P1 u [mm]"]), places=9)
        self.assertIsNone(frame["points"][1]["u"])
        self.assertEqual(len(frame["lines"][0]), 11)

    def test_what_makes_no_sense_is_refused(self):
        self.track("dic_out")
        self.refuse(2, ["Nothing was asked"], "probe", "dic_out")
        self.refuse(2, ["--point", "x,y"], "probe", "dic_out", "--point", "1,2,3")
        self.refuse(2, ["--area", "three corners"], "probe", "dic_out", "--area", "1,1 2,2")
        self.refuse(2, ["outside the reference"], "probe", "dic_out", "--point", "1000,2")
        self.refuse(2, ["1 px apart"], "probe", "dic_out", "--extensometer", "50,50,50,50")
        self.refuse(2, ["--loads"], "probe", "dic_out", "--point", "50,50", "--section", "3")
        (self.folder / "machine.csv").write_text("frame,Extension (mm),Temperature\n1,2,3\n2,3,4\n")
        asked = ["probe", "dic_out", "--point", "50,50", "--loads", "machine.csv"]
        self.refuse(1, ["\"Extension (mm)\"", "\"Temperature\""], *asked)
        self.refuse(2, ["needs a force", "Extension"], *asked, "--load-column", "extension", "--section", "3")
        self.assertFalse((self.folder / "dic_probe").exists())
        self.refuse(1, ["none.csv"], "probe", "dic_out", "--point", "50,50", "--loads", "none.csv")
        self.succeed("probe", "dic_out", "--point", "50,50", "--quiet")
        self.refuse(1, ["dic_probe", "--force"], "probe", "dic_out", "--point", "50,50")


    def test_frames_keep_their_numbers_after_one_that_cannot_be_read(self):
        (self.folder / "frame_1.png").write_bytes((self.folder / "frame_1.png").read_bytes()[:200])
        (self.folder / "machine.csv").write_text("frame,Force [N]\n0,0\n1,10\n2,20\n")
        for times in ([], ["--fps", "2"]):
            self.succeed("track", ".", "--device", "cpu", "--no-pictures", "--quiet", "--force", *times, code=3)
            done = self.succeed("probe", "dic_out", "--point", "60,50", "--loads", "machine.csv", "--section", "10",
                                "--force")
            self.assertEqual(done.stderr, "")
            rows = self.read_csv("dic_probe/history.csv")
            self.assertEqual([(row["frame"], row["file"], row["stress [MPa]"]) for row in rows], [("2", "frame_2.png", "2")])
            self.assertEqual([row["time [s]"] for row in rows if times], ["1"] * bool(times))
            answer = json.loads((self.folder / "dic_probe/probe.json").read_text())
            self.assertEqual([(frame["frame"], frame["load"]) for frame in answer["frames"]], [(2, 20)])
            with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
                self.assertEqual(list(file["frame"]), [2])
            self.succeed("plot", "dic_out", "--field", "u", "--frames", "2", "-o", "plots", "--force")
            self.assertTrue((self.folder / "plots/u_0002.png").exists())
            self.refuse(2, ["no frame 1"], "plot", "dic_out", "--field", "u", "--frames", "1", "-o", "plots", "--force")
            self.succeed("export", "dic_out", "--to", "csv", "--frames", "2", "-o", "frame.csv", "--force")
            self.assertEqual({row["frame"] for row in self.read_csv("frame.csv")}, {"2"})

    def test_what_was_assumed_of_the_loads_is_said(self):
        self.track("dic_out")
        (self.folder / "machine.csv").write_text("Force\n0\n500\n1000\n")
        done = self.succeed("probe", "dic_out", "--point", "50,50", "--loads", "machine.csv", "--section", "10", "--quiet")
        self.assertEqual(done.stderr, "dic: The column \"Force\" has no unit: its loads are taken for N. "
                                      "The first row of the loads is taken for the reference.\n")
        self.assertEqual([float(row["stress [MPa]"]) for row in self.read_csv("dic_probe/history.csv")], [50, 100])


class Export(ResultTest):
    """Every format is read back by the programs that it is for."""

    def setUp(self):
        super().setUp()
        self.track_triangle()

    def track_triangle(self, *options):
        self.result = self.track("dic_out", "--scale", "0.5", "--roi-polygon", "10,10 130,10 10,110", *options)
        with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
            self.x, self.y, self.inside = (file["dic"][name][()] for name in ("x", "y", "inside"))

    def test_numpy(self):
        self.succeed("export", "dic_out", "--to", "npz")
        with np.load(self.folder / "table.npz") as data:
            self.assertEqual(set(data), set(self.result) - {"displacement"} | {"frame", "file", "x", "y", "inside",
                                                                               "length_unit"})
            for name in set(self.result) - {"displacement", "iterations"}:
                self.assertEqual(data[name].dtype, self.result[name].dtype)
                np.testing.assert_array_equal(data[name], self.result[name])
            np.testing.assert_array_equal(data["iterations"], self.result["iterations"])
            np.testing.assert_array_equal(data["x"], self.x)
            np.testing.assert_array_equal(data["inside"], self.inside)
            self.assertEqual(list(data["frame"]), [1, 2])
            self.assertEqual(list(data["file"]), ["frame_1.png", "frame_2.png"])
            self.assertEqual(list(data["length_unit"]), ["mm"])
        with zipfile.ZipFile(self.folder / "table.npz") as archive:
            self.assertIsNone(archive.testzip())

    def test_matlab(self):
        import scipy.io
        self.succeed("export", "dic_out", "--to", "mat", "-o", "a.mat")
        data = scipy.io.loadmat(self.folder / "a.mat")
        for name in set(self.result) - {"displacement"}:
            self.assertEqual(data[name].shape, (*self.inside.shape, 2))
            np.testing.assert_array_equal(data[name].transpose(2, 0, 1), self.result[name])
        np.testing.assert_array_equal(data["y"][:, 0], self.y)
        np.testing.assert_array_equal(data["inside"], self.inside)
        self.assertEqual([name[0][0] for name in data["file"]], ["frame_1.png", "frame_2.png"])
        self.assertEqual(data["length_unit"][0][0][0], "mm")

    def test_netcdf(self):
        self.succeed("export", "dic_out", "--to", "netcdf", "--frames", "2", "--arrays", "u,exx,status")
        with h5py.File(self.folder / "table.nc") as file:
            np.testing.assert_array_equal(file["exx"], self.result["exx"][1:])
            self.assertEqual({name: file[name].attrs["units"] for name in file},
                             {"u": "mm", "x": "mm", "y": "mm", "exx": "1", "status": "1", "frame": "1", "file": "1",
                              "inside": "1"})
            self.assertEqual((file.attrs["length_unit"], file.attrs["scale_mm_per_px"]), ("mm", 0.5))
            self.assertEqual(file["exx"].attrs["measure"], "green-lagrange")
            self.assertEqual(file["status"].attrs["flag_meanings"].split()[7], "outlier")
        if xarray:
            with xarray.open_dataset(self.folder / "table.nc", engine="h5netcdf") as data:
                self.assertEqual(set(data.data_vars), {"u", "exx", "status"})
                self.assertEqual(data.u.dims, ("frame", "y", "x"))
                self.assertEqual((data.u.attrs["units"], list(data.frame.values)), ("mm", [2]))
                np.testing.assert_array_equal(data.u, self.result["u"][1:])

    def test_csv(self):
        self.succeed("export", "dic_out", "--arrays", "u,exx,status")
        with open(self.folder / "table.csv", newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        self.assertEqual(list(rows[0]), ["frame", "file", "x [mm]", "y [mm]", "u [mm]", "exx", "status"])
        self.assertEqual(len(rows), 2 * self.inside.sum())
        j, i = np.argwhere(self.inside)[5]
        row = rows[self.inside.sum() + 5]
        self.assertEqual((row["frame"], row["file"]), ("2", "frame_2.png"))
        self.assertEqual((float(row["x [mm]"]), float(row["y [mm]"])), (self.x[i], self.y[j]))
        np.testing.assert_allclose(float(row["u [mm]"]), self.result["u"][1, j, i], rtol=1e-9)
        self.assertEqual(row["status"] == "ok", self.result["status"][1, j, i] == 0)
        np.testing.assert_allclose([float(row["u [mm]"]) for row in rows], self.result["u"][:, self.inside != 0].ravel(), rtol=1e-9)

    def test_columns_of_csv_begin_with_the_displacement(self):
        self.succeed("export", "dic_out")
        with open(self.folder / "table.csv", newline="", encoding="utf-8") as stream:
            header = next(csv.reader(stream))
        self.assertEqual(header, ["frame", "file", "x [mm]", "y [mm]", "u [mm]", "v [mm]", "zncc", "sigma_u [mm]",
                                  "sigma_v [mm]", "status", "iterations", "exx", "eyy", "exy", "e1", "e2", "von_mises",
                                  "sigma_exx", "sigma_eyy", "sigma_exy"])

    def grid_of(self, x, y, values):
        """Values at positions, in mm, as an array [y, x] of the result's grid; NaN elsewhere."""
        grid = np.full(self.inside.shape, np.nan)
        step = self.x[1] - self.x[0]
        i, j = np.rint((np.asarray(x) - self.x[0]) / step), np.rint((np.asarray(y) - self.y[0]) / step)
        grid[j.astype(int), i.astype(int)] = values
        return grid

    def expected(self, name, frame, sign=1):
        """The values of the points that are ok."""
        return np.where(self.result["status"][frame] == 0, sign * self.result[name][frame].astype(float), np.nan)

    def test_nodemaps_for_crackpy(self):
        done = self.succeed("export", "dic_out", "--to", "nodemap")
        self.assertEqual(done.stderr, "")
        self.assertEqual({path.name for path in (self.folder / "nodemaps").iterdir()}, {"frame_1.txt", "frame_2.txt"})
        # As CrackPy reads it: ten columns or more, y up, strain in percent.
        path = self.folder / "nodemaps/frame_2.txt"
        data = np.genfromtxt(path, delimiter=";", encoding="windows-1252")
        self.assertEqual(len(data), np.isfinite(self.expected("exx", 1)).sum())
        self.assertFalse(np.isnan(data).any())
        y = 119 * 0.5 - data[:, 2]
        for column, name, factor in ((4, "u", 1), (5, "v", -1), (7, "exx", 100), (8, "eyy", 100), (9, "exy", -1),
                                     (10, "von_mises", 100)):
            expected = np.where(np.isfinite(self.expected("exx", 1)), self.expected(name, 1, factor), np.nan)
            np.testing.assert_allclose(self.grid_of(data[:, 1], y, data[:, column]), expected, rtol=1e-5, atol=1e-9,
                                       err_msg=name)
        self.assertTrue((data[:, [3, 6]] == 0).all())
        header = [line for line in path.read_text().splitlines() if line.startswith("#")]
        self.assertIn("# frame : value_element : 2", header)
        self.assertIn("x_undef [mm]", header[-1])
        self.refuse(1, ["nodemaps", "--force"], "export", "dic_out", "--to", "nodemap")
        self.succeed("export", "dic_out", "--to", "nodemap", "--force")
        (self.folder / "nodemaps/other.txt").write_text("a frame of another test")
        self.refuse(1, ["other.txt"], "export", "dic_out", "--to", "nodemap", "--force")
        self.track("in_px", "--fps", "4")
        done = self.succeed("export", "in_px", "--to", "nodemap", "-o", "px")
        self.assertIn("no scale", done.stderr)
        self.assertIn("# time : value_element : 0.5\n", (self.folder / "px/frame_2.txt").read_text())

    def test_csv_of_matchid(self):
        self.succeed("export", "dic_out", "--to", "matchid", "--frames", "2")
        with open(self.folder / "matchid/frame_2.csv", newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        column = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
        self.assertEqual(len(rows), self.inside.sum())
        x, y = column["coor.X [mm]"], column["coor.Y [mm]"]
        np.testing.assert_array_equal(column["Coordinates.Image X [Pixel]"], 2 * x)
        np.testing.assert_array_equal(column["Coordinates.Image Y [Pixel]"], 2 * y)
        for theirs, name in (("disp.Horizontal Displacement U [mm]", "u"), ("disp.Vertical Displacement V [mm]", "v"),
                             ("strain.Strain-global frame: Exx [ ]", "exx"), ("strain.Strain-global frame: Eyy [ ]", "eyy"),
                             ("strain.Strain-global frame: Exy [ ]", "exy"),
                             ("strain.Maximum Principal Strain: EI [ ]", "e1"),
                             ("strain.Minimum Principal Strain: EII [ ]", "e2")):
            np.testing.assert_allclose(self.grid_of(x, y, column[theirs]), self.expected(name, 1), rtol=1e-4, atol=1e-8,
                                       err_msg=name)

    def test_mat_of_ncorr(self):
        import scipy.io
        self.track_triangle("--step", "8", "--force")
        done = self.succeed("export", "dic_out", "--to", "ncorr")
        self.assertIn("2 px to the right and 2 px below", done.stderr)
        data = scipy.io.loadmat(self.folder / "ncorr.mat", squeeze_me=True, struct_as_record=False)
        self.assertEqual([image.name for image in data["current_save"]], ["frame_1.png", "frame_2.png"])
        self.assertEqual(data["reference_save"].name, "frame_0.png")
        dic = data["data_dic_save"]
        info = dic.dispinfo
        self.assertEqual((info.spacing, info.pixtounits, info.units, list(info.origin)), (7, 0.5, "mm", [2, 2]))
        shift, strain = dic.displacements[1], dic.strains[1]
        mask = shift.roi_dic.mask.astype(bool)
        self.assertEqual(mask.shape, (15, 18))  # of 120 x 140 px from (2, 2) on, every 8
        j, i = np.nonzero(mask)
        x, y = (2 + 8 * i) * info.pixtounits, (2 + 8 * j) * info.pixtounits
        for plot, name, factor in ((shift.plot_u_ref_formatted, "u", 1), (shift.plot_v_ref_formatted, "v", 1),
                                   (shift.plot_u_dic, "u", 2), (strain.plot_exx_ref_formatted, "exx", 1),
                                   (strain.plot_eyy_ref_formatted, "eyy", 1), (strain.plot_exy_ref_formatted, "exy", 1)):
            self.assertTrue((plot[~mask] == 0).all())
            expected = np.nan_to_num(self.expected(name, 1, factor))
            np.testing.assert_allclose(np.nan_to_num(self.grid_of(x, y, plot[mask])), expected, rtol=1e-6, atol=1e-12,
                                       err_msg=name)
        np.testing.assert_allclose(self.grid_of(x, y, 1 - shift.plot_corrcoef_dic[mask] / 2), self.expected("zncc", 1),
                                   rtol=1e-6)
        np.testing.assert_array_equal(self.grid_of(x, y, strain.roi_ref_formatted.mask[mask]) == 1,
                                      ~np.isnan(self.expected("exx", 1)))

    def test_meshes_for_paraview(self):
        import vtk
        from vtk.util.numpy_support import vtk_to_numpy
        import xml.etree.ElementTree
        self.succeed("export", "dic_out", "--to", "vtu", "-o", "test.pvd")
        sets = xml.etree.ElementTree.parse(self.folder / "test.pvd").findall("Collection/DataSet")
        self.assertEqual([(part.get("timestep"), part.get("file")) for part in sets],
                         [("1", "test/frame_1.vtu"), ("2", "test/frame_2.vtu")])
        reader = vtk.vtkXMLUnstructuredGridReader()
        reader.SetFileName(str(self.folder / sets[1].get("file")))
        reader.Update()
        mesh = reader.GetOutput()
        points = vtk_to_numpy(mesh.GetPoints().GetData())
        self.assertEqual(len(points), self.inside.sum())
        y = 119 * 0.5 - points[:, 1]  # VTK's y points up
        arrays = {mesh.GetPointData().GetArrayName(k): vtk_to_numpy(mesh.GetPointData().GetArray(k))
                  for k in range(mesh.GetPointData().GetNumberOfArrays())}
        self.assertEqual(set(arrays), set(self.result))
        for name in set(self.result) - {"displacement"}:
            inside = np.where(self.inside == 1, self.result[name][1].astype(float), np.nan)
            np.testing.assert_array_equal(self.grid_of(points[:, 0], y, arrays[name]), inside, err_msg=name)
        np.testing.assert_array_equal(arrays["displacement"],
                                      np.column_stack([arrays["u"], -arrays["v"], np.zeros(len(points))]))
        # A cell for every square whose four corners are inside.
        corners = self.inside[:-1, :-1] & self.inside[1:, :-1] & self.inside[:-1, 1:] & self.inside[1:, 1:]
        self.assertEqual(mesh.GetNumberOfCells(), corners.sum())
        size = vtk.vtkMeshQuality()
        size.SetInputData(mesh)
        size.SetQuadQualityMeasureToArea()
        size.Update()
        areas = vtk_to_numpy(size.GetOutput().GetCellData().GetArray("Quality"))
        np.testing.assert_allclose(areas, (self.x[1] - self.x[0]) ** 2)
        self.assertEqual(vtk_to_numpy(mesh.GetFieldData().GetArray("TimeValue"))[0], 2)

    def test_mat_on_a_full_disk_leaves_the_old_file(self):
        for form in ("mat", "ncorr"):
            (self.folder / "a.mat").write_text("mine")
            for share in (0.1, 0.5, 0.97):
                self.succeed("export", "dic_out", "--to", form, "-o", "whole.mat", "--force")
                limit = int(share * (self.folder / "whole.mat").stat().st_size)
                self.refuse(1, ["cannot be written"], "export", "dic_out", "--to", form, "-o", "a.mat", "--force", "--quiet",
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                self.assertEqual((self.folder / "a.mat").read_text(), "mine")
                self.assertEqual([path.name for path in self.folder.glob(".dic-*")], [])

    def test_what_makes_no_sense_is_refused(self):
        self.refuse(2, [".pvd"], "export", "dic_out", "--to", "vtu", "-o", "mesh")
        self.refuse(2, ["two cameras"], "export", "dic_out", "--to", "ply")
        self.refuse(2, ["arrays of its own"], "export", "dic_out", "--to", "ncorr", "--arrays", "u")
        self.refuse(2, ["ezz", "exx"], "export", "dic_out", "--arrays", "ezz")
        self.refuse(2, ["components"], "export", "dic_out", "--arrays", "displacement")
        self.refuse(2, ["no frame 7"], "export", "dic_out", "--frames", "7")
        self.refuse(2, ["xlsx"], "export", "dic_out", "--to", "xlsx")
        self.refuse(1, ["none"], "export", "none")
        self.refuse(2, ["replace"], "export", "dic_out", "-o", "dic_out/result.vtkhdf", "--force")
        (self.folder / "table.csv").write_text("mine")
        self.refuse(1, ["table.csv", "--force"], "export", "dic_out")
        self.refuse(1, ["cannot be written"], "export", "dic_out", "--to", "mat", "-o", "no/such/a.mat")


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
