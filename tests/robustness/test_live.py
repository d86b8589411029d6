"""dic live with Aravis's fake cameras, in the process and as a GigE Vision camera: python test_live.py DIC"""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import h5py
import numpy as np

import dic_program
import fake_camera
from dic_program import ProgramTest, main

GIGE = "127.0.0.1"
SIZE = f"0,0,{fake_camera.SIZE},{fake_camera.SIZE}"
QUICK = ["--region", SIZE, "--subset", "21", "--threads", "1", "--device", "cpu"]
FIELD = ["--step", "16"]


class LiveTest(ProgramTest):
    def live(self, *arguments, **options):
        program = subprocess.Popen([dic_program.PROGRAM, "live", *QUICK, *map(str, arguments)], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.kill)
        lines = queue.Queue()
        program.reader = threading.Thread(target=lambda: [lines.put(json.loads(line)) for line in program.stdout], daemon=True)
        program.reader.start()
        return program, lines

    def end(self, program, code=0):
        self.assertEqual(program.wait(timeout=120), code, program.stderr.read() if program.returncode != code else "")
        program.reader.join(timeout=60)

    def next_frame(self, lines):
        while True:
            line = lines.get(timeout=120)
            if "event" not in line:
                return line

    def measure(self, *arguments, code=0):
        """The lines of the frames, and the last line, of a whole measurement."""
        done = self.succeed("live", *QUICK, *arguments, code=code)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(lines[0]["event"], "start")
        self.assertEqual(lines[-1]["event"], "end")
        frames = [line for line in lines if "event" not in line]
        self.check_counts(frames, lines[-1])
        return frames, lines[-1], lines[0]

    def check_counts(self, frames, end):
        drops = end["drops"]
        lost = sum(drops[cause] for cause in ("camera", "network", "no_buffer", "measuring"))
        self.assertEqual(end["produced"], end["results"] + lost, end)
        self.assertEqual(end["results"], len(frames))
        self.assertEqual([frame["frame"] for frame in frames], list(range(1, len(frames) + 1)))
        for cause, count in drops.items():
            self.assertLessEqual(sum(frame["drops"][cause] for frame in frames), count)

    def camera(self, *arguments):
        """A GigE Vision camera."""
        script = os.path.join(os.path.dirname(fake_camera.__file__), "fake_camera.py")
        program = subprocess.Popen([sys.executable, "-B", script, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertEqual(program.stdout.readline(), "ready\n")
        return program

    def check_shifts(self, frames, reference_id):
        """Frames of fake_camera.py have moved by whole pixels; its ids go from 65535 to 1."""
        for frame in frames:
            raw = (frame["id"] - 1) % 65535 + 1
            expected = fake_camera.shift_of(raw) - fake_camera.shift_of(reference_id)
            self.assertAlmostEqual(frame["mean_u"], expected, delta=0.05, msg=frame)
            self.assertAlmostEqual(frame["mean_v"], 0, delta=0.05)

    @staticmethod
    def id_of(name):
        return int(name.removeprefix("frame_").removesuffix(".pgm"))


class FakeCameraTest(LiveTest):
    def test_twenty_frames(self):
        frames, end, start = self.measure("--camera", "fake", "--fps", "20", "--until", "20", *FIELD, "-o", "out")
        self.assertEqual(len(frames), 20)
        self.assertEqual(start["settings"]["region"]["actual"], SIZE)
        self.assertEqual(float(start["settings"]["frame rate"]["actual"]), 20)
        # The speckle is stretched by 1 % along x in 15 equal steps, back and forth.
        state = lambda frame_id: min(frame_id % 30, 30 - frame_id % 30)
        reference = state(self.id_of(start["reference"]))
        for frame in frames:
            expected = 0.01 * (state(frame["id"]) - reference) / 15
            self.assertAlmostEqual(frame["mean_exx"], expected, delta=4e-4, msg=frame)
            self.assertGreater(frame["latency"], 0)
        self.assertEqual(self.run_json("out")["state"], "complete")
        self.assertEqual(self.fields("out")["u"].shape[0], 20)

    def test_ids_go_on_where_the_camera_wraps_them(self):
        # The fake camera numbers its frames from 65401 on, and 1 follows 65535.
        frames, end, _ = self.measure("--camera", "fake", "--fps", "200", "--until", "150", "--drop", "never",
                                      "--extensometer", "35,65,95,65")
        ids = [frame["id"] for frame in frames]
        self.assertEqual(ids, list(range(ids[0], ids[0] + 150)))
        self.assertGreater(ids[-1], 65535)
        self.assertEqual(end["drops"], dict.fromkeys(end["drops"], 0))

    def test_recorded_frames_tracked_again_give_the_same_bits(self):
        frames, end, start = self.measure("--camera", "fake", "--fps", "50", "--drop", "never", "--until", "8", "--record", "frames",
                                          "-o", "out", "--format", "Mono16", *FIELD)
        self.assertEqual(end["recorded"], 9)
        self.assertEqual(frames[-1]["file"], sorted(os.listdir(self.folder / "frames"))[-2])  # the last is frames.csv
        self.succeed("track", "frames", "--subset", "21", "--step", "16", "--device", "cpu", "-o", "again", "--pictures", "none",
                     "--times", "frames/frames.csv")
        once, again = self.fields("out"), self.fields("again")
        for name, values in once.items():
            np.testing.assert_array_equal(values, again[name], err_msg=name)
        self.refuse(1, ["frames", "not empty"], "live", *QUICK, "--camera", "fake", "--record", "frames", "-o", "other")

    def test_points_of_a_table(self):
        (self.folder / "points.csv").write_text("x,y\n32,48\n64,64\n40,70.5\n")
        frames, _, start = self.measure("--camera", "fake", "--fps", "20", "--until", "3", *FIELD, "--points", "points.csv")
        self.assertEqual(start["points"], 2 + 4)  # two on nodes, one between four
        self.assertEqual([(point["x"], point["y"]) for point in frames[0]["points"]], [(32, 48), (64, 64), (40, 70.5)])
        for point in frames[-1]["points"]:
            self.assertIsNone(point["problem"] if point["u"] is None else None)
            self.assertLess(point["sigma_u"], 0.1)

    def test_positions_near_the_border_are_named(self):
        # Half a subset of 21 px is 10 px.
        told = lambda *places: self.succeed("live", *QUICK, "--camera", "fake", "--until", "1", *places, "--force").stderr
        (self.folder / "points.csv").write_text("x,y\n60,60\n60,5\n3,60\n")
        self.assertIn("Point 2 at 60,5 px is measured 5 px from the border of the image and needs 10 px, half a subset of 21 px", told("--points", "points.csv"))
        self.assertIn("1 more", told("--points", "points.csv"))
        self.assertIn("The second end of extensometer 1 at 122.5,60 px is measured 2 px", told("--extensometer", "60,60,122.5,60"))
        self.assertIn("The second end of extensometer 1 at 140,60 px has no values", told("--extensometer", "60,60,140,60", *FIELD))
        self.assertNotIn("border", told("--extensometer", "10,60,115,60"))
        for place, reach in (("126,60", "0,0 and 125,125 px"), ("200,60", "0,0 and 125,125 px"), ("60,-1", "outside the image")):
            self.refuse(2, [f"The position {place} px cannot be measured", reach], "live", *QUICK, "--camera", "fake", "--until", "1",
                        "--extensometer", f"60,60,{place}", "-o", "beyond")
        self.refuse(2, ["The position 62,62 px", "beside it at 60,60 px lies outside the region"], "live", *QUICK, "--camera", "fake", "--until", "1",
                    "--extensometer", "62,62,100,62", "--roi-hole", "58,58 58,61 61,61 61,58", "-o", "beyond")

    def test_overload_is_counted(self):
        frames, end, _ = self.measure("--camera", "fake", "--fps", "1000", "--step", "2", "--until", "5")
        self.assertGreater(end["drops"]["measuring"] + end["drops"]["no_buffer"], 0)
        frames, end, _ = self.measure("--camera", "fake", "--fps", "1000", "--step", "2", "--drop", "stop", "--buffers", "4",
                                      "-o", "stopped", code=1)
        self.assertIn("lost", end["text"])
        self.assertEqual(self.fields("stopped")["u"].shape[0], len(frames))

    def test_features_are_set_and_read_back(self):
        _, _, start = self.measure("--camera", "fake", "--set", "ExposureTimeAbs=1500", "--gain", "3", "--until", "1", *FIELD)
        self.assertEqual(float(start["settings"]["ExposureTimeAbs"]["actual"]), 1500)
        self.assertEqual(float(start["settings"]["gain"]["actual"]), 3)
        self.refuse(2, ["no feature Sharpness"], "live", "--camera", "fake", "--set", "Sharpness=3", "-o", "a")
        self.refuse(2, ["pixel format Mono7"], "live", "--camera", "fake", "--format", "Mono7", "-o", "a")
        self.refuse(1, ["0x01080009", "not read", "grey format"], "live", *QUICK, "--camera", "fake", "--format", "BayerRG8", "-o", "a")
        self.refuse(2, ["at most 4096 x 4096 px"], "live", "--camera", "fake", "--region", "0,0,9999,9999", "-o", "a")
        self.refuse(2, ["--until"], "live", "--camera", "fake", "--until", "soon")
        self.refuse(2, ["No camera was named"], "live", "--until", "5")

    def test_lines_reach_other_programs(self):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        receiver.bind((GIGE, 0))
        receiver.settimeout(120)
        program, lines = self.live("--camera", "fake", "--fps", "10", "--until", "30", *FIELD, "--tcp", "0",
                                   "--udp", f"{GIGE}:{receiver.getsockname()[1]}")
        port = int(program.stderr.readline().split("port ")[1].rstrip(".\n"))
        with socket.create_connection((GIGE, port), timeout=120) as connection:
            told = connection.makefile().readlines()
        self.end(program)
        printed = list(lines.queue)
        told = [json.loads(line) for line in told]
        self.assertEqual(told[0], printed[0])
        self.assertEqual(told[-1], printed[-1])
        self.assertEqual(told[1:], printed[len(printed) - len(told) + 1:])
        self.assertEqual([json.loads(receiver.recv(1 << 16)) for _ in printed], printed)

    def test_an_end_before_the_first_result_is_whole(self):
        # Files are handed to the disk every 5 s: here before there is one.
        frames, end, _ = self.measure("--camera", "fake", "--fps", "0.1", "--until", "6s", *FIELD, "-o", "out")
        self.assertEqual((frames, end["text"]), ([], None))
        self.assertEqual(self.run_json("out")["state"], "complete")
        self.assertTrue((self.folder / "out/result.vtkhdf").exists())

    def test_ctrl_c_ends_whole(self):
        program, lines = self.live("--camera", "fake", *FIELD, "-o", "out")
        for _ in range(3):
            self.next_frame(lines)
        program.send_signal(signal.SIGINT)
        self.end(program)
        self.assertEqual(self.run_json("out")["state"], "complete")

    def test_a_missing_library_is_named(self):
        (self.folder / "libaravis-0.8.so.0").write_text("no library")
        environment = dict(os.environ, LD_LIBRARY_PATH=str(self.folder))
        self.refuse(1, ["libaravis-0.8-0"], "live", "--camera", "fake", env=environment)
        done = self.dic("live", "--list", env=environment)
        self.assertEqual(done.returncode, 0)
        self.assertIn("libaravis-0.8-0", done.stderr)

    def test_the_list_names_the_fake_camera(self):
        self.assertIn("fake", self.succeed("live", "--list").stdout)


class PairTest(LiveTest):
    """Two fake cameras in the process that see a specimen move; nothing triggers them together."""

    PAIR = ["--camera", "fake-left", "--right-camera", "fake-right", "--calibration", "rig/stereo.json", "--fps", "5"]

    def setUp(self):
        super().setUp()
        size = str(fake_camera.SIZE)
        self.succeed("synth", "--stereo", "--width", size, "--height", size, "--focal", str(2.5 * fake_camera.SIZE), "--frames", "1",
                     "-o", "rig")

    def test_motion_in_space(self):
        (self.folder / "points.csv").write_text("x,y\n64,64\n")
        frames, end, start = self.measure(*self.PAIR, "--points", "points.csv", "--extensometer", "40,64,88,64", "--until", "5")
        self.assertIn("right frame rate", start["settings"])
        state = lambda frame_id: min(frame_id % 30, 30 - frame_id % 30)
        reference = state(self.id_of(start["reference"]))
        for frame in frames:
            # A machine under load may shift the cameras by one frame.
            moved = (state(frame["id"]) - reference) / 15
            point, = frame["points"]
            for key, whole in (("U", 1), ("V", -0.5), ("W", -2)):
                self.assertAlmostEqual(point[key], whole * moved, delta=0.25, msg=frame)
                self.assertLess(point["sigma_" + key], 0.2)
            self.assertAlmostEqual(point["Z"], 500, delta=3)
            self.assertLess(abs(point["epipolar"]), 0.5)
            self.assertAlmostEqual(frame["extensometers"][0]["strain"], 0.01 * moved, delta=2e-3)
        self.assertGreater(abs(frames[-1]["points"][0]["W"]), 0.3)

    def surface(self, output):
        """Number of points of each step of surface.vtkhdf, and all arrays over the points."""
        with h5py.File(self.folder / output / "surface.vtkhdf") as file:
            root = file["VTKHDF"]
            self.assertEqual(root["Steps"].attrs["NSteps"], len(root["Steps/Values"]))
            arrays = {name: values[()] for name, values in root["PointData"].items()}
            return root["NumberOfPoints"][()], {"position": root["Points"][()], **arrays}

    def test_recorded_pairs_measured_again_give_the_same_bits(self):
        space = ["--axes", "points", "--axes-points", "32,32 96,32 32,96", "--correct-rig"]
        frames, end, start = self.measure(*self.PAIR, *FIELD, *space, "--drop", "never", "--until", "4", "--record", "frames",
                                          "--extensometer", "32,64,96,64", "--csv", "-o", "out")
        self.assertEqual((end["recorded"], start["axes"]), (5, "points"))
        self.succeed("stereo", "--left", "frames/left", "--right", "frames/right", "--calibration", "rig/stereo.json", "--subset", "21",
                     *FIELD, *space, "--device", "cpu", "--no-pictures", "--csv", "-o", "again")
        once, again = self.fields("out"), self.fields("again")
        for name, values in once.items():
            np.testing.assert_array_equal(values, again[name][1:], err_msg=name)  # the first one is the reference
        (count, surface), (all_counts, all_surfaces) = self.surface("out"), self.surface("again")
        np.testing.assert_array_equal(count, all_counts[1:])
        for name, values in surface.items():
            np.testing.assert_array_equal(values, all_surfaces[name][all_counts[0]:], err_msg=name)
        for name in ("stereo.json", f"csv/{frames[-1]['file'].removesuffix('.pgm')}.csv"):
            self.assertEqual((self.folder / "out" / name).read_bytes(), (self.folder / "again" / name).read_bytes(), name)
        settings = self.run_json("out")["settings"]
        self.assertEqual((settings["axes"], settings["axes_points"], settings["correct_rig"]),
                         ("points", [[32, 32], [96, 32], [32, 96]], True))
        # The gauge, whose ends are nodes, in space: with the arrays of the other run.
        fields = {name: values[1:, 4, [2, 6]] for name, values in again.items()}
        at = np.stack([fields[name] for name in "XYZ"], axis=-1)
        moved = at + np.stack([fields[name] for name in "UVW"], axis=-1)
        length, now = (np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) for ends in (at, moved))
        for frame, strain in zip(frames, now / length - 1):
            self.assertAlmostEqual(frame["extensometers"][0]["strain"], strain, delta=1e-9)
            self.assertGreater(frame["extensometers"][0]["sigma_strain"], 0)

    def test_axes_of_points_that_are_measured_alone(self):
        # The points of the axes are no nodes of the gauge: they are measured with it.
        frames, _, start = self.measure(*self.PAIR, "--extensometer", "30,60,90,60", "--axes", "points",
                                        "--axes-points", "30,30 90,30 30,90", "--until", "2", "-o", "out")
        self.assertEqual(start["points"], 5)
        for values in (self.fields("out")[name] for name in "XYZ"):  # the first point is the origin
            np.testing.assert_allclose(values[:, 0, 0], 0, atol=1e-9)

    def test_what_does_not_fit_is_refused(self):
        self.refuse(2, ["calibration"], "live", "--camera", "fake-left", "--right-camera", "fake-right")
        self.refuse(2, ["right camera"], "live", "--camera", "fake-left", "--calibration", "rig/stereo.json")
        self.refuse(2, ["same"], "live", "--camera", "fake", "--right-camera", "fake", "--calibration", "rig/stereo.json")
        self.refuse(1, ["none.json", "no such file"], "live", *self.PAIR[:4], "--calibration", "none.json")
        self.refuse(2, ["reference"], "live", *self.PAIR, "--reference", "a.png")
        self.refuse(2, ["scale"], "live", *self.PAIR, "--scale", "0.1")
        self.refuse(2, ["no right camera"], "live", "--camera", "fake-left", "--axes", "plane")
        self.refuse(2, ["through points"], "live", *self.PAIR, "--axes-points", "1,1 2,2 3,1")
        self.refuse(2, ["--axes-points", "three points"], "live", *self.PAIR, "--axes", "points", "--axes-points", "1,1")
        self.refuse(2, ["not round"], "live", *QUICK, *FIELD, *self.PAIR, "--axes", "cylinder", "-o", "round")
        self.refuse(2, ["style"], "live", *self.PAIR, "--csv", "--csv-style", "vic")


class GigeCameraTest(LiveTest):
    def test_frames_of_the_network(self):
        self.camera()
        frames, end, start = self.measure("--camera", GIGE, "--fps", "25", "--until", "10", *FIELD, "-o", "out")
        self.check_shifts(frames, self.id_of(start["reference"]))

    def test_software_trigger_loses_nothing(self):
        self.camera()
        frames, end, start = self.measure("--camera", GIGE, "--trigger", "software", "--until", "6", *FIELD)
        self.assertEqual((end["produced"], end["results"]), (6, 6))
        self.check_shifts(frames, self.id_of(start["reference"]))

    def test_lost_packets_are_counted(self):
        self.camera(30)
        frames, end, start = self.measure("--camera", GIGE, "--fps", "50", "--until", "60", *FIELD, "-o", "out")
        self.assertGreater(end["drops"]["network"], 0)
        self.check_shifts(frames, self.id_of(start["reference"]))

    def check_vanishing(self, *options):
        camera = self.camera()
        program, lines = self.live("--camera", GIGE, "--fps", "25", *FIELD, "-o", "out", *options)
        for _ in range(3):
            self.next_frame(lines)
        camera.kill()
        camera.wait()
        killed = time.monotonic()
        while (line := lines.get(timeout=120)).get("event") != "lost":
            pass
        self.assertLess(time.monotonic() - killed, 12)  # 6 s, and what a loaded machine adds
        self.assertIn("vanished", line["text"])
        self.end(program, 1)
        self.assertIn("vanished", program.stderr.read())
        end = list(lines.queue)[-1]
        self.assertEqual(end["event"], "end")
        self.assertIn("vanished", end["text"])
        self.assertEqual(self.fields("out")["u"].shape[0], end["results"])

    def test_a_camera_that_vanishes(self):
        self.check_vanishing()

    def test_a_camera_that_vanishes_while_it_is_triggered(self):
        self.check_vanishing("--trigger", "software")

    def test_a_slow_camera_has_not_vanished(self):
        self.camera()
        frames, end, _ = self.measure("--camera", GIGE, "--fps", "0.16", "--until", "2", *FIELD)
        self.assertIsNone(end["text"])
        self.assertGreater(frames[1]["time"] - frames[0]["time"], 6)  # nothing arrived meanwhile

    def test_a_camera_that_comes_back(self):
        camera = self.camera()
        program, lines = self.live("--camera", GIGE, "--fps", "25", *FIELD, "--lost", "wait=300")
        first = self.next_frame(lines)
        camera.kill()
        camera.wait()
        self.camera()
        while lines.get(timeout=120).get("event") != "back":
            pass
        again = self.next_frame(lines)
        self.assertGreater(again["frame"], first["frame"])
        self.assertGreater(again["time"], first["time"])
        program.send_signal(signal.SIGINT)
        self.end(program)

    def test_a_second_controller_is_refused(self):
        self.camera()
        _, lines = self.live("--camera", GIGE, *FIELD, "-o", "first")
        self.next_frame(lines)
        self.refuse(1, ["controlled by another program"], "live", *QUICK, "--camera", GIGE, "-o", "second")

    def test_no_camera_at_an_address(self):
        self.refuse(1, ["no camera 127.0.0.9"], "live", "--camera", "127.0.0.9")


if __name__ == "__main__":
    main()
