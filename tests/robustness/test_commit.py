"""Replacements of a result that are killed, or that fail, at every step: python test_commit.py DIC LIBRARY

The library, broken_calls.c, ends the program at a chosen call."""

import shutil
import sys

import h5py
import numpy as np

from dic_program import ProgramTest, is_sanitized, main

LIBRARY = None


class CommitTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if is_sanitized():
            self.skipTest("a sanitizer has to be the first library")
        self.frames = self.sequence([(0, 0), (0.3, -0.2), (0.6, 0.4)])
        self.old = ["track", *self.frames, "--subset", "21", "--step", "20", "--csv"]
        self.new = ["track", *self.frames[:2], "--subset", "25", "--step", "20", "--csv", "--no-pictures", "-o", "out"]
        self.succeed(*self.old, "-o", "old")
        self.succeed(*self.new[:-1], "new")
        self.old_files = self.files("old")

    def files(self, folder):
        """Contents by name, without what differs from run to run."""
        return {str(path.relative_to(self.folder / folder)): path.read_bytes()
                for path in (self.folder / folder).rglob("*") if path.is_file()}

    def subset(self, output="out"):
        with h5py.File(self.folder / output / "result.vtkhdf") as file:
            return int(file["dic"].attrs["subset"])

    def check_pair(self):
        """The two files that describe each other are of one result."""
        with h5py.File(self.folder / "out/result.vtkhdf") as file:
            about = file["dic"].attrs
            stored = int(about["subset"]), int(about["strain_window"])
        settings = self.run_json("out")["settings"]
        self.assertEqual((settings["subset"], settings["strain_window"]), stored)

    def broken(self, call, at, fails, *arguments, path=".dic-"):
        environment = {"LD_PRELOAD": LIBRARY, "DIC_TEST_CALL": call, "DIC_TEST_AT": str(at), "DIC_TEST_PATH": path}
        if fails:
            environment["DIC_TEST_ERROR"] = "1"
        return self.dic(*arguments, env=environment)

    def fresh(self):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        shutil.copytree(self.folder / "old", self.folder / "out")

    def check_new(self):
        """The folder holds the new result, and nothing else."""
        names = {"result.vtkhdf", "run.json", ".dic-files", ".dic-frames.jsonl", "csv/frame_1.csv"}
        self.assertEqual(set(self.files("out")), names)
        self.assertEqual(set((self.folder / "out/.dic-files").read_text().split()), names - {".dic-files"})
        run = self.run_json("out")
        self.assertEqual((run["state"], run["settings"]["subset"], self.subset()), ("complete", 25, 25))
        self.assertEqual((self.folder / "out/csv/frame_1.csv").read_bytes(),
                         (self.folder / "new/csv/frame_1.csv").read_bytes())
        for name, values in self.fields("out").items():
            np.testing.assert_array_equal(values, self.fields("new")[name], name)

    def test_force_that_ends_at_any_step(self):
        steps = 0
        kinds = [("rename", ".dic-", False), ("remove", "out/", False), ("mkdir", "out", False),
                 ("link", "out", False), ("symlink", "out", False),
                 ("rename", ".dic-", True), ("mkdir", "out", True), ("link", "out", True), ("symlink", "out", True)]
        for call, path, fails in kinds:
            for at in range(1, 100):
                self.fresh()
                if self.broken(call, at, fails, *self.new, "--force", path=path).returncode == 0:
                    break
                with self.subTest(call=call, at=at, fails=fails):
                    steps += 1
                    self.assertIn(self.subset(), (21, 25), "there is always a whole result")
                    self.check_pair()
                    if self.subset() == 25 or list((self.folder / "out").glob(".dic-*.new/result.vtkhdf")):
                        self.succeed(*self.new, "--resume")
                    else:  # nothing was measured
                        self.refuse(2, ["other settings"], *self.new, "--resume")
                        self.succeed(*self.new, "--force")
                    self.check_new()
        self.assertGreater(steps, 30)

    def test_another_force_after_a_killed_commit(self):
        """What the killed commit has put into place belongs to dic, too."""
        for at in range(5, 12):
            self.fresh()
            self.broken("rename", at, False, *self.new, "--force")
            self.succeed(*self.new, "--force")
            self.check_new()

    def test_strain_in_place_that_ends_at_any_step(self):
        strain = ["strain", "out", "--strain-window", "7", "--in-place"]
        self.fresh()
        self.succeed(*strain)
        new = self.files("out")
        fields = self.fields("out")
        steps = 0
        kinds = [("rename", ".dic-"), ("remove", "out/"), ("mkdir", "out"), ("link", "out"), ("symlink", "out")]
        for call, path, fails in [(*kind, fails) for kind in kinds for fails in (False, True)]:
            for at in range(1, 30):
                self.fresh()
                if self.broken(call, at, fails, *strain, path=path).returncode == 0:
                    break
                with self.subTest(call=call, at=at, fails=fails):
                    steps += 1
                    self.check_pair()
                    old = (self.folder / "out/result.vtkhdf").read_bytes() == self.old_files["result.vtkhdf"]
                    if old:
                        self.assertEqual((self.folder / "out/run.json").read_bytes(), self.old_files["run.json"])
                    # Whatever writes into the folder next, without a result or with an error, finishes the commit.
                    self.refuse(1, ["already holds"], *self.old, "-o", "out")
                    files = self.files("out")
                    self.assertEqual({name for name in files if not name.startswith(".dic-") or name in new}, set(new))
                    window = self.run_json("out")["settings"]["strain_window"]
                    with h5py.File(self.folder / "out/result.vtkhdf") as file:
                        self.assertEqual(int(file["dic"].attrs["strain_window"]), window)
                    self.succeed(*strain)
                    self.assertEqual(set(self.files("out")), set(new))
                    for name, values in self.fields("out").items():
                        np.testing.assert_array_equal(values, fields[name], name)
        self.assertGreaterEqual(steps, 20)

    def test_strain_in_place_leaves_a_result_that_can_be_continued(self):
        kept = 0
        for at in range(1, 9):
            self.fresh()
            self.broken("rename", at, False, *self.new, "--force")
            collected = list((self.folder / "out").glob(".dic-*.new/result.vtkhdf"))
            committed = list((self.folder / "out").glob(".dic-*.new/.dic-commit"))
            if collected and not committed:
                kept += 1
                self.succeed("strain", "out", "--strain-window", "7", "--in-place")
                self.succeed(*self.new, "--resume")
                self.check_new()
        self.assertGreater(kept, 1)

    def test_a_commit_does_not_lead_outside(self):
        """A marker and files that somebody prepared stay inside the folder."""
        self.fresh()
        secret = self.folder / "secret"
        secret.write_text("mine")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        collection = self.folder / "out/.dic-0123456789abcdef.new"
        (collection / "link").mkdir(parents=True)
        (collection / ".dic-commit").write_text("../secret\n/" + str(secret) + "\nlink/../../secret\n")
        (collection / "link/file").write_text("theirs")
        (self.folder / "out/link").symlink_to(elsewhere)
        self.refuse(1, ["symbolic link"], *self.new, "--force")
        self.assertEqual((secret.read_text(), list(elsewhere.iterdir())), ("mine", []))

    def test_a_cut_off_line_of_the_list(self):
        """A full disk cuts off the list; the next name is a line of its own."""
        log = self.folder / "new/.dic-files"
        log.write_text(log.read_text() + "csv/fra")
        self.succeed(*self.new[:-2], "--pictures", "all", "--resume", "-o", "new")
        self.succeed(*self.new[:-1], "new", "--force")
        self.assertFalse((self.folder / "new/pictures").exists())
        self.assertEqual(self.run_json("new")["state"], "complete")


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(2)
    main()
