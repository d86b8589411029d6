"""`dic bench` from the outside: python test_bench.py DIC"""

import csv
import json
import re
import signal
import subprocess
import unittest

import cv2

import dic_program
from dic_program import ProgramTest

GROUPS = """
[[group]]
name = "small"
reference = [7, 12]
shifts = 3
n = 4
variant = ["planner", "naive", "cpu-none"]
"""
FAST = ("--device", "cpu", "--min-time", "0", "--repeats", "1")


class BenchCorrelateTest(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "groups.toml").write_text(GROUPS)

    def report(self):
        return json.loads((self.folder / "out.json").read_text())

    def test_list_has_a_line_per_variant(self):
        lines = [line.split() for line in self.succeed("bench", "correlate", "--list").stdout.splitlines()]
        names = [line[0] for line in lines]
        self.assertIn("cpu-naive", names)
        self.assertEqual(len(names), len(set(names)))
        for _, backend, pairings, types in lines:
            self.assertIn(backend, ("cpu", "cuda", "opencl"))
            self.assertTrue(set(pairings.split(",")) <= {"one_to_one", "one_to_many", "n_to_mn", "n_to_m"})
            self.assertTrue(set(types.split(",")) <= {"u8", "u16", "i32", "f32", "f64"})

    def test_reports(self):
        done = self.succeed("bench", "correlate", "groups.toml", "--json", "out.json", "--csv", "out.csv", "--plots", "p", *FAST)
        self.assertEqual(done.stderr, "")
        self.assertIn("4 right, 0 wrong, 2 failed, of 6. Seed 1.", done.stdout)
        report = self.report()
        self.assertIn("bench correlate groups.toml", report["machine"]["command"])
        with open(self.folder / "out.csv", newline="") as file:
            table = list(csv.DictReader(file))
        self.assertEqual(len(table), len(report["rows"]))
        for line, row in zip(table, report["rows"]):
            self.assertEqual(line["outcome"], row["outcome"])
            self.assertEqual(line["problem"], row["problem"])
            self.assertAlmostEqual(float(line["median_s"]), row["seconds"]["median"], delta=1e-4 * row["seconds"]["median"])
            self.assertEqual(int(line["ref_h"]), row["case"]["reference"][0])
        plots = sorted(path.name for path in (self.folder / "p").iterdir())
        self.assertEqual(plots[0], "roofline.png")
        self.assertEqual(len(plots), 2)
        self.assertIn("over-cpu-naive", plots[1])
        for name in plots:
            self.assertEqual(cv2.imread(str(self.folder / "p" / name)).shape, (620, 1040, 3))

    def test_the_report_as_markdown(self):
        self.succeed("bench", "correlate", "groups.toml", "--json", "out.json", *FAST)
        lines = self.succeed("bench", "report", "out.json").stdout.splitlines()
        self.assertIn("| case | floor | planner | cpu-naive | cpu-none |", lines)
        (line,) = [line for line in lines if "12x12" in line]
        number = r"[0-9.e+-]+"  # no floor where the processor lacks the instructions
        self.assertRegex(line, rf"\| ({number})? \| {number} \(cpu-[\w-]+\) \| {number} \| failed \|$")

    def test_the_report_in_a_document(self):
        self.succeed("bench", "correlate", "groups.toml", "--json", "out.json", *FAST)
        document = self.folder / "doc.md"
        document.write_text("before\n<!-- report: out -->\nold\n<!-- end of report -->\nafter\n")
        self.succeed("bench", "report", "out.json", "--into", "doc.md")
        tables = self.succeed("bench", "report", "out.json").stdout
        self.assertEqual(
            document.read_text(), f"before\n<!-- report: out -->\n{tables}<!-- end of report -->\nafter\n"
        )
        (self.folder / "other.json").write_text((self.folder / "out.json").read_text())
        self.refuse(2, ["<!-- report: other -->"], "bench", "report", "other.json", "--into", "doc.md")

    def test_resume_keeps_what_is_done(self):
        self.succeed("bench", "correlate", "groups.toml", "--json", "out.json", *FAST)
        first = self.report()
        (self.folder / "groups.toml").write_text(GROUPS.replace("[7, 12]", "[7, 12, 13]"))
        done = self.succeed("bench", "correlate", "groups.toml", "--json", "out.json", "--resume", *FAST)
        self.assertIn("6 right, 0 wrong, 3 failed, of 9.", done.stdout)
        kept = [row for row in first["rows"] if row["outcome"] == "ok"]
        for row in kept:
            self.assertIn(row, self.report()["rows"])
        self.assertEqual(done.stdout.count("(planned)"), 1)  # only the new size was run

    def test_an_interrupted_run_keeps_its_rows(self):
        (self.folder / "groups.toml").write_text(GROUPS.replace("[7, 12]", str(list(range(3, 43)))))
        command = ("bench", "correlate", "groups.toml", "--json", "out.json", "--device", "cpu", "--min-time", "0.02")
        running = subprocess.Popen([dic_program.PROGRAM, *command], cwd=self.folder, stdout=subprocess.PIPE)
        while b"cpu-naive" not in running.stdout.readline():
            pass
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        self.assertEqual(running.returncode, 130)
        kept = self.report()["rows"]
        self.assertLess(len(kept), 120)
        self.assertTrue(any(row["variant"] == "cpu-naive" for row in kept))
        self.succeed("bench", "correlate", "groups.toml", "--json", "out.json", "--resume", *FAST)
        self.assertEqual(len(self.report()["rows"]), 120)

    def test_resume_refuses_another_run(self):
        self.succeed("bench", "correlate", "groups.toml", "--json", "out.json", *FAST)
        self.refuse(2, ["seed 1", "seed 2"], "bench", "correlate", "groups.toml", "--json", "out.json", "--resume",
                    "--seed", "2", *FAST)
        self.refuse(2, ["--json"], "bench", "correlate", "groups.toml", "--resume", *FAST)

    def test_mistakes_in_groups(self):
        (self.folder / "bad.toml").write_text(GROUPS + "\n[[group]]\nname = 'b'\nreference = 7\nshifts = 'some'\n")
        self.refuse(2, ["bad.toml, line 9", '"some"'], "bench", "correlate", "bad.toml", *FAST)
        (self.folder / "bad.toml").write_text("[[group]\n")
        self.refuse(2, ["bad.toml, line 1"], "bench", "correlate", "bad.toml", *FAST)
        self.refuse(1, ["none.toml"], "bench", "correlate", "none.toml", *FAST)
        self.refuse(2, ["no report"], "bench", "report", "bad.toml")

    def test_wrong_usage(self):
        self.refuse(2, ["repeat"], "bench", "correlate", "groups.toml", "--device", "cpu", "--repeats", "0")
        self.refuse(1, ["out.json"], "bench", "correlate", "groups.toml", "--json", "none/out.json", *FAST)


class BenchPipelinesTest(ProgramTest):
    def test_track(self):
        out = self.succeed("bench", "track", "--size", "256", "--repeats", "1", "--subset", "21", "--step", "7",
                           "--device", "cpu", "--threads", "1").stdout
        self.assertIn("625 points, subset 21, step 7, order 1, cubic", out)
        for stage in ("prepare", "search", "refine", "strain", "total"):
            self.assertRegex(out, rf"  {stage} +[0-9.]+ ms +[0-9]+ points/s")
        self.refuse(2, ["repeat"], "bench", "track", "--repeats", "0")
        self.refuse(2, ["odd"], "bench", "track", "--size", "256", "--subset", "20")

    def test_stereo(self):
        out = self.succeed("bench", "stereo", "--size", "240", "--repeats", "1", "--device", "cpu", "--threads", "1").stdout
        measured, points = map(int, re.search(r"(\d+) of (\d+) points measured, subset 21, step 8", out).groups())
        self.assertGreater(measured, 0.5 * points)
        self.assertRegex(out, r"pair +[0-9.]+ ms +[0-9]+ 3-D points/s")
        ratio = float(re.search(r"takes ([0-9.]+) times as long as a frame of the left camera", out)[1])
        self.assertGreater(ratio, 1)
        z, w = map(float, re.search(r"error Z ([0-9.]+) um, W ([0-9.]+) um", out).groups())
        self.assertTrue(0 < z < 30 and 0 < w < 30, out)  # a px is 0.8 mm
        self.refuse(2, ["--repeats"], "bench", "stereo", "--repeats", "0")

    def test_track_images(self):
        self.succeed("synth", "--width", "160", "--height", "120", "--u", "0.4", "--frames", "3", "-o", "scene")
        flags = ["bench", "track", "--images", "scene", "--device", "cpu", "--repeats", "1", "--step", "10"]
        out = self.succeed(*flags, "--frames", "5", "--roi-rect", "30,20,80,60").stdout
        self.assertIn("Tracking 5 frames of 160x120 on cpu: subset 33, step 10", out)
        whole, region = re.findall(r"points of a frame: (.*)", out)
        self.assertEqual(self.points(region), 8 * 6)
        self.assertEqual(self.points(whole), 16 * 12)
        self.assertRegex(out, r"the whole image takes [0-9.]+ times as long as the region")
        self.assertNotIn("region", self.succeed(*flags).stdout)
        self.refuse(2, ["two images"], *flags[:2], "--images", "scene/frame_0000.png")
        self.refuse(1, ["none"], *flags[:2], "--images", "none")
        self.refuse(2, ["--images"], "bench", "track", "--roi-rect", "0,0,80,80")

    @staticmethod
    def points(text):
        """The sum of "28 ok, 20 flat"."""
        return sum(int(number) for number in re.findall(r"[0-9]+", text))

    def test_timeline(self):
        flags = ["bench", "track", "--size", "200", "--repeats", "1", "--device", "cpu", "--timeline", "t.png"]
        out = self.succeed(*flags, "--frames", "10").stdout
        self.assertRegex(out, r"10 PNG files of 200x200 px to result.vtkhdf, 576 points, cpu: [0-9.]+ frames/s")
        self.assertTrue((self.folder / "t.png").exists())
        self.refuse(2, ["--frames"], *flags)
        self.assertEqual(self.refuse(2, ["9 measured frames"], *flags, "--frames", "8").stdout, "")

    def test_match(self):
        out = self.succeed("bench", "match", "--size", "256", "--template", "32", "--device", "cpu").stdout
        self.assertRegex(out, r"Template 32x32 in 256x256, 8 bit, on cpu: [0-9.]+ ms")
        self.assertRegex(out, r"[0-9.]+ times as fast as cv::matchTemplate")
        self.refuse(2, ["template"], "bench", "match", "--size", "64", "--template", "64")

    def test_match_at_any_angle(self):
        out = self.succeed("bench", "match", "--poses", "--size", "256", "--template", "48").stdout
        self.assertRegex(out, r"at any angle in 256x256, 8 bit, on cpu: [0-9.]+ ms")
        error, turn = re.search(r"([0-9.]+) px and ([0-9.]+) degrees from the true pose", out).groups()
        self.assertLess(float(error), 0.05)
        self.assertLess(float(turn), 0.1)
        self.assertRegex(out, r"in the next image of a sequence: [0-9.]+ ms")

    def test_ceilings(self):
        lines = self.succeed("bench", "ceilings", "--repeats", "1").stdout.splitlines()
        for name, unit in (("f32 multiply-adds", "Gop/s"), ("memory", "GB/s")):
            (line,) = [line for line in lines if line.startswith(name)]
            self.assertRegex(line, rf"[0-9.]+ {unit}$")

    def test_quick_names_every_part(self):
        out = self.succeed("bench", "--quick", "--device", "cpu").stdout
        for words in ("Integer search on cpu", "x naive", "u8 subset 31", "Template 64x64 in 2048x2048",
                      "Tracking 1024x1024 on cpu"):
            self.assertIn(words, out)
        self.refuse(2, ["--quick"], "bench")


class BenchRegressTest(ProgramTest):
    """Runs only the quick entries of the fixed set."""

    def regress(self, *options, code=0):
        done = self.dic("bench", "regress", "--only", "start", "--turns", "8", "--device", "cpu", *options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_slower_program_is_noticed(self):
        slow = self.folder / "slow"
        slow.write_text(f'#!/bin/sh\nsleep 0.2\nexec {dic_program.PROGRAM} "$@"\n')
        slow.chmod(0o755)
        rows = self.regress("--against", slow).stdout.splitlines()
        walls = [row for row in rows if " wall " in row]
        self.assertEqual(len(walls), 1)
        self.assertTrue(walls[0].endswith("faster"), "this build, seen from the slow one: " + walls[0])

    def test_an_earlier_report(self):
        self.regress("--json", "before.json")
        report = json.loads((self.folder / "before.json").read_text())
        self.assertEqual({len(times["seconds"]) for times in report["times"]}, {8})
        for times in report["times"]:
            times["seconds"] = [seconds / 20 for seconds in times["seconds"]]
        (self.folder / "before.json").write_text(json.dumps(report))
        done = self.regress("--against", "before.json", code=1)
        self.assertIn("slower", done.stdout)
        report["machine"]["model"] = "another"
        (self.folder / "before.json").write_text(json.dumps(report))
        self.assertIn("another machine", self.regress("--against", "before.json", code=2).stderr)

    def test_real_images(self):
        self.succeed("synth", "--width", "400", "--height", "1040", "--u", "1", "-o", "real/oht_sequence")
        flags = ["bench", "regress", "--turns", "8", "--device", "cpu", "--images", "real", "--only"]
        out = self.succeed(*flags, "cpu oht region").stdout
        self.assertRegex(out, r"cpu oht region +wall +[0-9.]+\n")
        self.assertRegex(out, r"cpu oht region +refine +[0-9.]+\n")
        self.assertIn("utn", self.refuse(2, ["utn"], *flags, "cpu utn").stderr)

    def test_what_fails_says_so(self):
        failing = self.folder / "failing"
        failing.write_text("#!/bin/sh\necho no such option >&2\nexit 2\n")
        failing.chmod(0o755)
        self.assertIn("no such option", self.regress("--against", failing, code=2).stderr)
        self.assertIn("cpu pair", self.dic("bench", "regress", "--only", "nothing").stderr)
        self.assertIn("Cannot start", self.regress("--against", "nowhere/dic", code=2).stderr)


if __name__ == "__main__":
    dic_program.main()
