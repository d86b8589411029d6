"""`dic stereo` from the outside: python test_stereo.py DIC"""

import csv
import re

import h5py
import numpy as np

from dic_program import main
from stereo_scene import DISTANCE, FOCAL, HEIGHT, TRANSLATION, WIDTH, StereoScene

COLUMNS = ("x,y,u,v,X,Y,Z,U,V,W,sigma_X,sigma_Y,sigma_Z,sigma_U,sigma_V,sigma_W,epipolar,zncc,status,"
           "exx,eyy,exy,e1,e2")


def read_ply(path):
    """Vertices as a structured array, and the corners of the faces."""
    head, body = path.read_bytes().split(b"end_header\n", 1)
    words = [line.split() for line in head.decode().splitlines()]
    count = {line[1]: int(line[2]) for line in words if line[0] == "element"}
    types = {"double": "<f8", "float": "<f4"}
    vertex = np.dtype([(line[2], types[line[1]]) for line in words if line[0] == "property" and line[1] != "list"])
    face = np.dtype([("corners", "u1"), ("indices", "<i4", 4)])
    assert len(body) == count["vertex"] * vertex.itemsize + count["face"] * face.itemsize
    faces = np.frombuffer(body, face, count["face"], count["vertex"] * vertex.itemsize)
    assert (faces["corners"] == 4).all()
    return np.frombuffer(body, vertex, count["vertex"]), faces["indices"]


class Stereo(StereoScene):
    def stereo(self, left, right, *options, code=0, calibration="rig.yml"):
        return self.succeed("stereo", "--left", *left, "--right", *right, "--calibration", calibration, "--subset", 21,
                            "--step", 8, "--device", "cpu", *options, code=code)

    def table(self, name):
        with open(self.folder / "dic_out" / "csv" / name, newline="") as file:
            rows = list(csv.DictReader(file))
        return {key: np.array([row[key] if key == "status" else float(row[key]) for row in rows]) for key in rows[0]}

    def test_a_pair_of_motion_is_measured_and_written(self):
        shift = (0.8, -0.5, 1.2)
        left, right = self.pairs([(0, 0, 0), shift])
        done = self.stereo(left, right, "--csv")
        self.assertIn("surface.vtkhdf", done.stdout)
        header = (self.folder / "dic_out/csv/img-0001_0.csv").read_text().splitlines()[0]
        self.assertEqual(header, COLUMNS)
        table = self.table("img-0001_0.csv")
        ok = table["status"] == "ok"
        self.assertGreater(ok.mean(), 0.8)
        for name, truth in zip("ZUVW", (DISTANCE, *shift)):
            error = table[name][ok] - truth
            self.assertLess(abs(error.mean()), 0.003, name)
            self.assertLess(np.abs(error / table["sigma_" + name][ok]).max(), 6, name)
        self.assertLess(abs(table["exx"][ok][~np.isnan(table["exx"][ok])].mean()), 2e-4)
        self.assertTrue(np.isnan(table["Z"][~np.isin(table["status"], ["ok", "outlier"])]).all())
        reference = self.table("img-0000_0.csv")
        self.assertEqual(np.nanmax(np.abs(reference["U"])), 0)
        self.check_files(ok.sum())
        self.check_probes()
        self.check_exports()
        self.check_figures()

    def check_figures(self):
        """The left images lie below the fields, although the right ones were named first."""
        done = self.succeed("plot", "dic_out", "--field", "Z,magnitude", "--range", "0,2")
        self.assertEqual(done.stderr, "")
        self.assertTrue((self.folder / "dic_figures/magnitude_0001.png").exists())
        self.succeed("plot", "dic_out", "-o", "usual", "--quiet")
        drawn = sorted(path.name for path in (self.folder / "usual").iterdir())
        self.assertEqual(drawn, sorted(f"{name}_0001.png" for name in ("Z", "U", "V", "W", "exx", "eyy", "exy")))
        page = self.succeed("report", "dic_out", "--frames", "1")
        self.assertEqual(page.stderr, "")
        self.refuse(2, ["no frame 9", "from 0 to 1"], "report", "dic_out", "--frames", "9", "--force")
        self.assertIn('id="image-reference"', (self.folder / "report.html").read_text())

    def check_exports(self):
        """PLY and VTU hold the surface as it lies in the frame, nodemaps its positions in mm."""
        fields = self.fields()
        ok = np.isfinite(fields["W"][1])
        truth = np.column_stack([(fields[a] + fields[b])[1][ok] for a, b in ("XU", "YV", "ZW")])
        self.succeed("export", "dic_out", "--to", "ply", "--quiet")
        vertices, faces = read_ply(self.folder / "surface/img-0001_0.ply")
        np.testing.assert_array_equal(np.column_stack([vertices[axis] for axis in "xyz"]), truth)
        for name in ("sigma_Z", "exx", "status", "epipolar"):
            np.testing.assert_array_equal(vertices[name], fields[name][1][ok].astype(np.float32), err_msg=name)
        sides = np.linalg.norm(truth[faces] - truth[np.roll(faces, 1, axis=1)], axis=2)
        np.testing.assert_allclose(sides, 8 * DISTANCE / FOCAL, rtol=0.05)
        self.assertEqual(len(faces), (ok[:-1, :-1] & ok[1:, :-1] & ok[:-1, 1:] & ok[1:, 1:]).sum())
        self.succeed("export", "dic_out", "--to", "vtu", "-o", "mesh.pvd", "--quiet")
        import vtk
        from vtk.util.numpy_support import vtk_to_numpy
        reader = vtk.vtkXMLUnstructuredGridReader()
        reader.SetFileName(str(self.folder / "mesh/img-0001_0.vtu"))
        reader.Update()
        mesh = reader.GetOutput()
        np.testing.assert_array_equal(vtk_to_numpy(mesh.GetPoints().GetData()), truth)
        self.assertEqual(mesh.GetNumberOfCells(), len(faces))
        moved = vtk_to_numpy(mesh.GetPointData().GetArray("displacement"))
        np.testing.assert_array_equal(moved, np.column_stack([fields[name][1][ok] for name in "UVW"]))
        done = self.succeed("export", "dic_out", "--to", "nodemap", "--quiet")
        self.assertEqual(done.stderr, "")
        text = (self.folder / "nodemaps/img-0001_0.txt").read_text()
        self.assertIn("z_undef [mm]", text)
        rows = np.array([line.split(";") for line in text.splitlines() if not line.startswith("#")], float)
        self.assertAlmostEqual(np.median(rows[:, 3]), -DISTANCE, 1)
        self.assertAlmostEqual(np.median(rows[:, 5]), 0.5, 2)  # V is -0.5, y points up
        self.assertAlmostEqual(np.median(rows[:, 6]), -1.2, 1)

    def check_probes(self):
        """A rigid motion changes no distance in space, although it does in the images."""
        self.succeed("probe", "dic_out", "--point", "110,90", "--extensometer", "60,60,150,120", "--line", "60,90,160,90")
        with open(self.folder / "dic_probe/history.csv", newline="") as file:
            row = list(csv.DictReader(file))[1]
        self.assertAlmostEqual(float(row["P1 W [mm]"]), 1.2, 1)
        self.assertAlmostEqual(float(row["E1 gauge length [mm]"]), np.hypot(90, 60) * DISTANCE / FOCAL, 1)
        for name, sigma in (("E1 strain", "E1 sigma_strain"), ("L1 bending [mm]", "L1 sigma_bending [mm]")):
            self.assertLess(abs(float(row[name])), 6 * float(row[sigma]), name)
        self.assertLess(float(row["L1 flatness [mm]"]), 0.1)
        lines = (self.folder / "dic_probe/lines.csv").read_text().splitlines()[0]
        self.assertIn("offset [mm]", lines)
        self.assertIn("Z [mm]", lines)

    def check_files(self, ok):
        run = self.run_json()
        self.assertEqual(run["state"], "complete")
        self.assertEqual(run["frames"][1]["right_file"], "img-0001_1.png")
        self.assertEqual(run["frames"][1]["counts"]["ok"], ok)
        self.assertEqual(run["length_unit"], "mm")
        self.assertAlmostEqual(run["rig"]["angle_deg"], 20, 6)
        self.assertAlmostEqual(run["frames"][1]["rigid_motion"]["translation_mm"][2], 1.2, 2)
        fields = self.fields()
        self.assertEqual(fields["Z"].shape[0], 2)
        self.assertEqual((fields["status"][1] == 0).sum(), ok)
        self.assertTrue((self.folder / "dic_out/pictures/img-0001_0_W.png").exists())
        with h5py.File(self.folder / "dic_out/surface.vtkhdf") as file:
            root = file["VTKHDF"]
            self.assertEqual(root.attrs["Type"], b"PolyData")
            self.assertEqual(root["Steps"].attrs["NSteps"], 2)
            counts, offsets = root["NumberOfPoints"][()], root["Steps/PointOffsets"][()]
            self.assertEqual(list(offsets), [0, counts[0]])
            self.assertEqual(len(root["Points"]), counts.sum())
            moved = root["Points"][offsets[1]:]
            self.assertAlmostEqual(np.median(moved[:, 2]), DISTANCE + 1.2, 2)
            cells = root["Polygons/NumberOfCells"][()]
            self.assertEqual(len(root["Polygons/Connectivity"]), 4 * cells.sum())
            self.assertEqual(len(root["Polygons/Offsets"]), (cells + 1).sum())
            self.assertLess(root["Polygons/Connectivity"][()].max(), counts.max())
            self.assertEqual(len(root["PointData/W"]), counts.sum())

    def test_the_shape_alone_needs_one_pair(self):
        left, right = self.pairs([(0, 0, 0)])
        self.stereo(left, right, "--csv", "--axes", "plane", "--no-pictures")
        table = self.table("img-0000_0.csv")
        ok = table["status"] == "ok"
        self.assertLess(np.abs(table["Z"][ok] / table["sigma_Z"][ok]).max(), 6)
        self.assertFalse((self.folder / "dic_out/pictures").exists())

    def test_what_cannot_be_paired_is_said(self):
        left, right = self.pairs([(0, 0, 0), (0.2, 0, 0), (0.4, 0, 0)])
        self.refuse(2, ["3 left and 2 right"], "stereo", "--left", *left, "--right", *right[:2], "--calibration",
                    "rig.yml")
        done = self.stereo(left[:2], [right[0], right[2]], "--no-pictures")
        self.assertIn("different moments", done.stderr)
        self.assertIn("img-0002_1.png", self.run_json()["pairing"])

    def test_a_pair_that_cannot_be_read_is_skipped_with_3(self):
        left, right = self.pairs([(0, 0, 0), (0.2, 0, 0), (0.4, 0, 0)])
        (self.folder / right[1]).write_bytes(b"no image")
        done = self.stereo(left, right, "--no-pictures", code=3)
        self.assertIn(right[1], done.stderr)
        run = self.run_json()
        self.assertIn(right[1], run["frames"][1]["error"])
        self.assertGreater(run["frames"][2]["counts"]["ok"], 100)

    def test_a_foreign_calibration_ends_with_the_distance(self):
        left, right = self.pairs([(0, 0, 0)])
        lens = {"fx": FOCAL, "fy": FOCAL, "cx": (WIDTH - 1) / 2, "cy": (HEIGHT - 1) / 2}
        self.write_rig("foreign.yml", TRANSLATION + np.array([0, 3, 0]), lens)  # 9 px
        self.refuse(2, ["does not belong", "px from their epipolar lines"], "stereo", "--left", *left, "--right", *right,
                    "--calibration", "foreign.yml")
        self.assertFalse((self.folder / "dic_out").exists())

    def test_a_rig_that_moved_is_said_and_corrected(self):
        left, right = self.pairs([(0, 0, 0), (0.2, 0, 0)])
        lens = {"fx": FOCAL, "fy": FOCAL, "cx": (WIDTH - 1) / 2, "cy": (HEIGHT - 1) / 2}
        self.write_rig("moved.yml", TRANSLATION + np.array([0, 0.25, 0]), lens)  # 0.75 px, 0.14 degrees
        done = self.stereo(left, right, "--no-pictures", calibration="moved.yml")
        self.assertIn("have moved since their calibration", done.stderr)
        self.assertIn("--correct-rig", done.stderr)
        self.assertGreater(self.run_json()["frames"][0]["epipolar_median"], 0.3)
        done = self.stereo(left, right, "--no-pictures", "--correct-rig", "--force", calibration="moved.yml")
        self.assertEqual(done.stderr, "")
        self.assertIn("corrected: the right camera turned", done.stdout)
        run = self.run_json()
        self.assertLess(run["frames"][0]["epipolar_median"], 0.01)
        self.assertGreater(run["rig_correction"]["epipolar_before_px"], 0.3)
        done = self.stereo(left, right, "--no-pictures", "-o", "again", calibration="dic_out/stereo.json")
        self.assertEqual(done.stderr, "")

    def test_times_are_in_all_files(self):
        left, right = self.pairs([(0, 0, 0), (0.2, 0, 0), (0.4, 0, 0)])
        (self.folder / "times.csv").write_text("0\n0.5\n2.25\n")
        self.stereo(left, right, "--no-pictures", "--times", "times.csv")
        self.assertEqual([frame["time"] for frame in self.run_json()["frames"]], [0, 0.5, 2.25])
        for name in ("result", "surface"):
            with h5py.File(self.folder / f"dic_out/{name}.vtkhdf") as file:
                self.assertEqual(list(file["VTKHDF/Steps/Values"]), [0, 0.5, 2.25], name)
        self.stereo(left, right, "--no-pictures", "--fps", "4", "--force")
        self.assertEqual([frame["time"] for frame in self.run_json()["frames"]], [0, 0.25, 0.5])
        (self.folder / "short.csv").write_text("0\n1\n")
        self.refuse(2, ["2 times", "3 frames"], "stereo", "--left", *left, "--right", *right, "--calibration", "rig.yml",
                    "--times", "short.csv", "-o", "other")

    def test_options_of_one_camera_say_why(self):
        """Every option of dic track works or ends with a reason; a configuration of dic track with defaults is taken."""
        left, right = self.pairs([(0, 0, 0), (0.2, 0, 0)])
        images = ["stereo", "--left", *left, "--right", *right, "--calibration", "rig.yml", "-o", "other"]
        for options in (["--camera", "rig.yml"], ["--scale", "0.1"], ["--reference", left[0]], ["--global"],
                        ["--global-resolution", "20"], ["--csv-style", "vic"], ["--noise-floor"]):
            self.refuse(2, [options[0], "is for one camera"], *images, *options)
        names = lambda command: set(re.findall(r"--[a-z-]+", self.succeed("help", command).stdout))
        refused = {"--camera", "--scale", "--reference", "--global", "--global-resolution", "--csv-style", "--noise-floor"}
        self.assertEqual(names("track") - names("stereo"), refused)
        self.succeed("track", "--save-config", "track.toml")
        self.assertIn("scale", (self.folder / "track.toml").read_text())
        self.stereo(left, right, "--no-pictures", "--config", "track.toml")
        (self.folder / "scaled.toml").write_text("scale = 0.1\n")
        self.refuse(2, ["scale", "is for one camera"], *images, "--config", "scaled.toml")
        self.succeed("stereo", "--save-config", "stereo.toml")
        self.assertNotIn("csv-style", (self.folder / "stereo.toml").read_text())

    def test_little_memory_changes_nothing(self):
        left, right = self.pairs([(0, 0, 0), (0.2, 0, 0)])
        self.stereo(left, right, "--no-pictures")
        self.stereo(left, right, "--no-pictures", "--max-memory", "200M", "-o", "limited")
        for name, values in self.fields("limited").items():
            np.testing.assert_array_equal(values, self.fields()[name], name)

    def test_wrong_usage(self):
        left, right = self.pairs([(0, 0, 0)])
        self.refuse(2, ["--calibration"], "stereo", "--left", *left, "--right", *right)
        for options in (["--axes-points", "1,2"], ["--order", "0"], ["--axes", "points"], ["--camera", "rig.yml"]):
            done = self.dic("stereo", "--left", *left, "--right", *right, "--calibration", "rig.yml", *options)
            self.assertEqual(done.returncode, 2, (options, done.stderr))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         sorted([*left, *right, "rig.yml"]))


if __name__ == "__main__":
    main()
