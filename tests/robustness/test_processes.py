"""Several processes that measure one sequence together: python test_processes.py DIC"""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import h5py
import numpy as np
from vtkmodules.vtkIOHDF import vtkHDFReader

import dic_program
from dic_program import ProgramTest, main, speckle, write_image
from stereo_scene import StereoScene

FRAMES = 40


class Processes:
    """Starts several processes; `command` is what each of them runs."""

    def mpirun(self, processes, *arguments, **options):
        # Open MPI unloads its plug-ins before the leak sanitizer checks their memory, which can then not be
        # attributed and suppressed.
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        return subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(processes), dic_program.PROGRAM, *self.command(**options),
                                 *arguments], cwd=self.folder, env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def together(self, processes, *arguments, code=0, **options):
        with self.mpirun(processes, *arguments, **options) as run:
            out, error = run.communicate(timeout=200)
        self.assertEqual(run.returncode, code, error)
        return out, error


@unittest.skipUnless(shutil.which("mpirun"), "Open MPI is not installed (openmpi-bin)")
class ProcessesTest(Processes, ProgramTest):
    def setUp(self):
        super().setUp()
        for k in range(FRAMES + 1):
            write_image(self.folder / f"frame_{k:02d}.png", speckle(120, 160, 0.02 * k, -0.01 * k))
        self.options = ["--subset", "21", "--step", "6", "--device", "cpu", "--threads", "1"]

    def command(self, frames="frame_*.png"):
        return ["track", frames, *self.options]

    def alone(self, *arguments):
        self.succeed("track", "frame_*.png", *self.options, "-o", "alone", *arguments)

    def check_equal_to_one_process(self):
        one, all_of_them = self.fields("alone"), self.fields("out")
        self.assertEqual(set(one), set(all_of_them))
        same = one["status"] == all_of_them["status"]
        self.assertGreaterEqual(same.mean(), 0.9999)
        for name in ("u", "v"):
            self.assertEqual(all_of_them[name].shape[0], FRAMES)
            np.testing.assert_allclose(all_of_them[name][same], one[name][same], rtol=0, atol=1e-4)
        first, second = self.run_json("alone"), self.run_json("out")
        self.assertEqual([frame["file"] for frame in first["frames"]], [frame["file"] for frame in second["frames"]])
        self.assertEqual([frame["counts"] for frame in first["frames"]], [frame["counts"] for frame in second["frames"]])

    def test_one_result(self):
        self.alone("--csv", "--fps", "10", "--scale", "0.1")
        out, _ = self.together(3, "-o", "out", "--csv", "--fps", "10", "--scale", "0.1")
        self.assertEqual(out.count("Results in"), 1)
        self.check_equal_to_one_process()
        for folder in ("csv", "pictures"):
            self.assertEqual(sorted(os.listdir(self.folder / "alone" / folder)), sorted(os.listdir(self.folder / "out" / folder)))
        with h5py.File(self.folder / "alone/result.vtkhdf") as one, h5py.File(self.folder / "out/result.vtkhdf") as joined:
            self.assertTrue(joined["VTKHDF/PointData/u"].is_virtual)
            for name in ("VTKHDF/Steps/Values", "frame", "dic/frames"):
                np.testing.assert_array_equal(one[name][()], joined[name][()], name)
            self.assertEqual(joined["VTKHDF/Steps"].attrs["NSteps"], FRAMES)
        reader = vtkHDFReader()
        reader.SetFileName(str(self.folder / "out/result.vtkhdf"))
        reader.SetStep(FRAMES - 1)
        reader.Update()
        self.assertIsNotNone(reader.GetOutputDataObject(0).GetPointData().GetArray("u"))
        self.succeed("probe", "out", "--point", "80,60", "-o", "probe")
        self.assertEqual((self.folder / "probe/probe.json").read_text().count("frame_"), FRAMES)

    def test_few_large_images_by_rows(self):
        """Two frames and three processes: the grid is measured in bands of rows."""
        for k in range(3):
            write_image(self.folder / f"large_{k}.png", speckle(700, 300, 1.3 * k, -0.6 * k))
        options = ["--subset", "21", "--step", "4", "--device", "cpu", "--threads", "1", "--csv", "--scale", "0.1", "--fps", "2"]
        self.options = options
        self.succeed("track", "large_*.png", *options, "-o", "alone")
        self.together(3, "-o", "out", frames="large_*.png")
        plan = json.loads((self.folder / "out/parts/plan.json").read_text())
        self.assertEqual((len(plan["rows"]), plan["first"]), (4, [0]))
        one, joined = self.fields("alone"), self.fields("out")
        same = one["status"] == joined["status"]
        self.assertGreaterEqual(same.mean(), 0.9999)
        for name in ("u", "v"):
            np.testing.assert_allclose(joined[name][same], one[name][same], rtol=0, atol=1e-5)  # mm: 1e-4 px
        for name in ("exx", "sigma_u", "zncc", "iterations"):  # values are the same at the edges of bands
            np.testing.assert_array_equal(joined[name], one[name], name)
        for name in sorted(os.listdir(self.folder / "alone/csv")):
            self.assertEqual((self.folder / "alone/csv" / name).read_bytes(), (self.folder / "out/csv" / name).read_bytes())
        self.assertEqual(len(os.listdir(self.folder / "out/pictures")), len(os.listdir(self.folder / "alone/pictures")))
        first, second = self.run_json("alone"), self.run_json("out")
        self.assertEqual(first["points"], second["points"])
        for a, b in zip(first["frames"], second["frames"]):
            self.assertEqual((a["file"], a["counts"], a["time"]), (b["file"], b["counts"], b["time"]))
            self.assertAlmostEqual(a["mean_u"], b["mean_u"], places=6)
        with h5py.File(self.folder / "alone/result.vtkhdf") as a, h5py.File(self.folder / "out/result.vtkhdf") as b:
            for name in ("y", "x", "dic/inside", "VTKHDF/Steps/Values"):
                np.testing.assert_array_equal(a[name][()], b[name][()], name)
            self.assertEqual(list(a["VTKHDF"].attrs["WholeExtent"]), list(b["VTKHDF"].attrs["WholeExtent"]))

    def test_strain_of_a_joined_result(self):
        """The strain that replaces another one is the same as in a result of one process, and the rest stays."""
        self.alone("--pictures", "none", "--fps", "10")
        self.together(3, "-o", "out", "--pictures", "none", "--fps", "10")
        before = self.fields("out")
        for options in (["-o", "second"], ["--in-place"]):
            self.succeed("strain", "out", "--strain-window", "7", *options)
        self.succeed("strain", "alone", "--strain-window", "7", "--in-place")
        one, second, out = (self.fields(folder) for folder in ("alone", "second", "out"))
        same = one["status"] == out["status"]
        for name in one:
            np.testing.assert_array_equal(second[name], out[name], name)
            if name.startswith(("e", "sigma_e", "von")):
                np.testing.assert_allclose(out[name][same], one[name][same], rtol=0, atol=1e-5, err_msg=name)
            else:
                np.testing.assert_array_equal(out[name], before[name], name)
        self.assertEqual(self.run_json("out")["settings"]["strain_window"], 7)
        with h5py.File(self.folder / "out/result.vtkhdf") as file, h5py.File(self.folder / "alone/result.vtkhdf") as alone:
            self.assertFalse(file["VTKHDF/PointData/exx"].is_virtual)
            self.assertEqual(file["dic"].attrs["strain_window"], 7)
            for name in ("VTKHDF/Steps/Values", "frame", "dic/frames"):
                np.testing.assert_array_equal(file[name][()], alone[name][()], name)
        self.succeed("plot", "second", "--field", "exx", "-o", "figures")
        self.succeed("probe", "second", "--point", "80,60", "-o", "probe")

    def test_the_folder_can_move(self):
        self.together(2, "-o", "out", "--pictures", "none")
        (self.folder / "out").rename(self.folder / "elsewhere")
        self.assertEqual(self.fields("elsewhere")["u"].shape[0], FRAMES)

    def killed(self, processes, *arguments, **options):
        """stderr of a run in which a process was killed as soon as a part of the result existed."""
        with self.mpirun(processes, *arguments, **options) as run:
            while run.poll() is None and not list((self.folder / "out").glob("parts/*/result.vtkhdf")):
                time.sleep(0.01)
            pids = subprocess.run(["pgrep", "-f", f"^{dic_program.PROGRAM} track"], capture_output=True, text=True).stdout
            own = [int(pid) for pid in pids.split() if os.path.realpath(f"/proc/{pid}/cwd") == str(self.folder.resolve())]
            os.kill(own[-1], signal.SIGKILL)
            _, error = run.communicate(timeout=60)
        self.assertNotEqual(run.returncode, 0)
        return error

    def test_a_process_that_dies(self):
        self.alone("--pictures", "none")
        self.assertIn("signal 9", self.killed(3, "-o", "out", "--pictures", "none"))
        with self.mpirun(2, "-o", "out", "--pictures", "none") as run:
            _, error = run.communicate(timeout=60)
        self.assertIn("--resume", error)
        self.together(2, "-o", "out", "--pictures", "none", "--resume")
        self.check_equal_to_one_process()
        out, _ = self.together(2, "-o", "out", "--pictures", "none", "--resume")
        self.assertIn("nothing is left to do", out)

    def test_a_process_with_a_band_of_rows_that_dies(self):
        for k in range(4):
            write_image(self.folder / f"large_{k}.png", speckle(900, 600, 1.3 * k, -0.6 * k))
        self.options = ["--subset", "21", "--step", "4", "--device", "cpu", "--threads", "1", "--pictures", "none"]
        self.succeed("track", "large_*.png", *self.options, "-o", "alone")
        self.assertIn("signal 9", self.killed(4, "-o", "out", frames="large_*.png"))
        self.assertEqual(len(json.loads((self.folder / "out/parts/plan.json").read_text())["rows"]), 5)
        self.together(2, "-o", "out", "--resume", frames="large_*.png")
        one, joined = self.fields("alone"), self.fields("out")
        for name in ("u", "v", "exx", "status"):
            np.testing.assert_array_equal(joined[name], one[name], name)

    def test_what_cannot_be_shared(self):
        for options, word in ((["--reference-strategy", "previous"], "first"), (["--noise-floor"], "noise floor"),
                              (["--force"], "another folder")):
            _, error = self.together(2, "-o", "out", *options, code=2)
            self.assertEqual(error.count("dic: process 0 of 2"), 1, error)
            self.assertIn(word, error)


@unittest.skipUnless(shutil.which("mpirun"), "Open MPI is not installed (openmpi-bin)")
class StereoProcessesTest(Processes, StereoScene):
    PAIRS = 7  # with the references

    def setUp(self):
        super().setUp()
        self.pairs([(0.12 * k, -0.05 * k, 0.3 * k) for k in range(self.PAIRS)])
        self.options = []

    def command(self, left="img-*_0.png", right="img-*_1.png"):
        return ["stereo", "--left", left, "--right", right, "--calibration", "rig.yml", "--subset", "21", "--step", "8",
                "--device", "cpu", "--threads", "1", *self.options]

    def check_equal_to_one_process(self, measured=PAIRS):
        one, joined = self.fields("alone"), self.fields("out")
        self.assertEqual(set(one), set(joined))
        self.assertEqual(one["X"].shape[0], measured)
        np.testing.assert_array_equal(one["status"][0], joined["status"][0])
        # The first pair of a part is searched without a prediction: points at the border may be found or not, and
        # their neighbours' bends are known from others then.
        same = one["status"] == joined["status"]
        self.assertGreater(same.mean(), 0.99)
        for name in "XYZ":  # of the references, in every pair
            np.testing.assert_array_equal(joined[name][same], one[name][same], name)
        found = same & (one["status"] == 0)
        for name in ("U", "V", "W", "sigma_U", "sigma_V", "sigma_W"):
            difference = np.abs(joined[name] - one[name])[found]
            self.assertLess(np.quantile(difference, 0.98), 1e-4, name)
            self.assertLess(difference.max(), 0.02, name)
        first, second = self.run_json("alone"), self.run_json("out")
        for key in ("state", "frames_done", "frames_given", "points", "chosen", "gauge_px", "gauge_mm", "reference", "rig",
                    "rig_correction", "image", "frames_drawn", "device"):
            self.assertEqual(first[key], second[key], key)
        for a, b in zip(first["frames"], second["frames"], strict=True):
            for key in ("file", "right_file", "time", "error"):
                self.assertEqual(a[key], b[key])
        with h5py.File(self.folder / "alone/result.vtkhdf") as a, h5py.File(self.folder / "out/result.vtkhdf") as b:
            for name in ("VTKHDF/Steps/Values", "frame", "dic/frames"):
                np.testing.assert_array_equal(a[name][()], b[name][()], name)
        with h5py.File(self.folder / "alone/surface.vtkhdf") as a, h5py.File(self.folder / "out/surface.vtkhdf") as b:
            np.testing.assert_array_equal(b["VTKHDF/Steps/Values"][()], a["VTKHDF/Steps/Values"][()])

    def test_one_result(self):
        self.options = ["--csv", "--fps", "10", "--correct-rig"]
        self.succeed(*self.command(), "-o", "alone")
        out, _ = self.together(3, "-o", "out")
        self.assertEqual(out.count("Results in"), 1)
        self.check_equal_to_one_process()
        for folder in ("csv", "pictures"):
            names = sorted(os.listdir(self.folder / "alone" / folder))
            self.assertEqual(names, sorted(os.listdir(self.folder / "out" / folder)))
        reference = "img-0000_0.csv"
        self.assertEqual((self.folder / "alone/csv" / reference).read_bytes(), (self.folder / "out/csv" / reference).read_bytes())
        self.assertEqual(json.loads((self.folder / "alone/stereo.json").read_text()),
                         json.loads((self.folder / "out/stereo.json").read_text()))
        self.assertFalse((self.folder / "out/parts").exists())
        self.succeed("probe", "out", "--point", "100,80", "-o", "probe")
        out, _ = self.together(2, "-o", "out", "--resume")
        self.assertIn("holds all pairs: nothing is left to do", out)
        _, error = self.together(2, "-o", "out", code=1)
        self.assertIn("already", error)

    def test_a_broken_pair_is_skipped(self):
        (self.folder / "img-0003_1.png").write_bytes(b"no image")
        self.succeed(*self.command(), "-o", "alone", code=3)
        self.together(3, "-o", "out", code=3)
        self.check_equal_to_one_process(self.PAIRS - 1)

    def test_a_process_that_dies(self):
        self.options = ["--pictures", "none"]
        self.succeed(*self.command(), "-o", "alone")
        with self.mpirun(2, "-o", "out") as run:
            while run.poll() is None and not list((self.folder / "out").glob("parts/*/result.vtkhdf")):
                time.sleep(0.01)
            run.send_signal(signal.SIGTERM)
            run.communicate(timeout=60)
        if (self.folder / "out/parts").exists():  # it was not faster than the signal
            with self.mpirun(3, "-o", "out") as again:
                _, error = again.communicate(timeout=60)
            self.assertIn("--resume", error)
            self.together(3, "-o", "out", "--resume")
        self.check_equal_to_one_process()

    def test_what_cannot_be_shared(self):
        for options, word in ((["--reference-strategy", "previous"], "first"), (["--force"], "another folder")):
            _, error = self.together(2, "-o", "out", *options, code=2)
            self.assertEqual(error.count("dic: process 0 of 2"), 1, error)
            self.assertIn(word, error)
        _, error = self.together(2, "-o", "out", right="img-000[1-5]_1.png", code=2)
        self.assertIn("There are 7 left and 5 right images", error)
        self.assertFalse((self.folder / "out").exists())


main()
