"""Results in folders with earlier or foreign files: python test_output.py DIC"""

import os
import resource
import signal
import subprocess

import dic_program
from dic_program import ProgramTest, main, speckle, write_image

QUICK = ("--subset", "21", "--step", "10", "--no-pictures")


class OutputTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.frames = self.sequence([(0, 0), (0.3, -0.2), (1.6, 0.8)])
        self.out = self.folder / "dic_out"

    def track(self, *options, frames=None, code=0):
        return self.succeed("track", *(frames or self.frames), *QUICK, *options, code=code)

    def names(self):
        return {str(path.relative_to(self.out)) for path in self.out.rglob("*")}

    def test_two_runs_into_one_new_folder(self):
        """Each result comes from a single run, no matter which was first; the other run says why it ends."""
        many = self.frames[:1] + self.frames[1:] * 10
        for attempt in range(3):
            output = f"out{attempt}"
            runs = [subprocess.Popen([dic_program.PROGRAM, "track", *many, *QUICK, "--csv", "-o", output, "--order", order],
                                     cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                    for order in ("0", "1")]
            ends = [(run.communicate(timeout=120)[1], run.returncode) for run in runs]
            self.assertEqual(sorted(code for _, code in ends), [0, 1], ends)
            winner = [code for _, code in ends].index(0)
            self.assertRegex(ends[1 - winner][0], "Another run of dic is writing|already holds a result")
            run = self.run_json(output)
            self.assertEqual(run["settings"]["order"], winner)
            self.assertEqual(len(run["frames"]), 20)
            self.assertEqual(len(self.fields(output)["u"]), 20)
            self.assertEqual(len(list((self.folder / output / "csv").iterdir())), 20)

    def test_a_stopped_run_keeps_others_away_and_a_killed_one_does_not(self):
        self.track("-o", "dic_out")
        run = subprocess.Popen([dic_program.PROGRAM, "track", *(self.frames * 200), *QUICK, "--csv", "--force"],
                               cwd=self.folder, stdout=subprocess.DEVNULL)
        while not list(self.out.glob(".dic-*.new")) and run.poll() is None:
            pass
        run.send_signal(signal.SIGSTOP)
        self.refuse(1, ["Another run of dic"], "track", *self.frames, *QUICK, "--force")
        run.kill()
        run.wait()
        self.track("--force")
        self.assertEqual(self.names(), {"result.vtkhdf", "run.json", ".dic-files", ".dic-frames.jsonl"})

    def test_names_like_ours_are_left_alone(self):
        self.out.mkdir()
        for name in ("result.vtkhdf.part", "run.json.part", ".dic-new", "csv"):
            (self.out / name).mkdir() if name in (".dic-new", "csv") else (self.out / name).write_text("mine")
        (self.out / ".dic-new/x").write_text("mine")
        (self.out / "csv/frame_1.csv.part").write_text("mine")
        before = self.names()
        self.track("--csv")
        self.track("--csv", "--force")
        self.assertTrue(before <= self.names())
        for name in ("result.vtkhdf.part", "run.json.part", ".dic-new/x", "csv/frame_1.csv.part"):
            self.assertEqual((self.out / name).read_text(), "mine")

    def test_symbolic_links_in_the_folder_are_not_followed(self):
        mine = self.folder / "mine"
        mine.mkdir()
        (mine / "frame_1.csv").write_text("mine")
        (self.folder / "secret").write_text("mine")
        self.out.mkdir()
        (self.out / "result.vtkhdf").symlink_to("../secret")
        self.refuse(1, ["result.vtkhdf", "not written by dic"], "track", *self.frames, *QUICK, "--force")
        (self.out / "result.vtkhdf").unlink()
        (self.out / "csv").symlink_to("../mine")
        self.refuse(1, ["csv", "not written by dic"], "track", *self.frames, *QUICK, "--csv", "--force")
        # a manipulated list
        (self.out / ".dic-files").write_text("result.vtkhdf\nrun.json\n.dic-frames.jsonl\ncsv/frame_1.csv\n../secret\n")
        self.track("--force")
        self.assertEqual((mine / "frame_1.csv").read_text(), "mine")
        self.assertEqual((self.folder / "secret").read_text(), "mine")

    def test_a_newline_in_a_name(self):
        write_image(self.folder / "a\nnotes.png", speckle(120, 140, 0.3))
        self.track("--csv", frames=[self.frames[0], "a\nnotes.png"])
        self.assertTrue((self.out / "csv/a\nnotes.csv").exists())
        (self.out / "notes.csv").write_text("mine")
        (self.out / "csv/a").write_text("mine")
        self.track("--force")
        self.assertEqual((self.out / "notes.csv").read_text() + (self.out / "csv/a").read_text(), "minemine")
        self.assertFalse((self.out / "csv/a\nnotes.csv").exists())

    def test_an_empty_earlier_result_does_not_block(self):
        (self.folder / "bad.png").write_text("not an image")
        self.track(frames=[self.frames[0], "bad.png"], code=3)
        self.track()
        self.assertEqual(len(self.run_json()["frames"]), 2)
        self.refuse(1, ["--force"], "track", *self.frames, *QUICK)

    def test_devices_pipes_and_folders_are_not_replaced(self):
        os.mkfifo(self.folder / "pipe")
        (self.folder / "taken").mkdir()
        for name in ("pipe", "taken", "/dev/null"):
            self.refuse(1, ["cannot be written"], "track", "--save-config", name)
        (self.folder / "pipe.png").symlink_to("pipe")
        self.refuse(1, ["cannot be written"], "match", self.frames[0], "--template-rect", "20,20,30,30", "--draw", "pipe.png")
        self.assertTrue((self.folder / "pipe").is_fifo())
        self.assertTrue(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"))

    def test_behind_a_symbolic_link_the_file_is_replaced(self):
        (self.folder / "real.toml").write_text("old")
        (self.folder / "link.toml").symlink_to("real.toml")
        self.succeed("track", "--save-config", "link.toml")
        self.assertTrue((self.folder / "link.toml").is_symlink())
        self.assertIn("subset", (self.folder / "real.toml").read_text())

    def test_a_configuration_never_replaces_an_image(self):
        before = (self.folder / self.frames[1]).read_bytes()
        self.refuse(2, ["choose another name"], "track", *self.frames, "--save-config", self.frames[1])
        self.assertEqual((self.folder / self.frames[1]).read_bytes(), before)

    def test_places_that_cannot_be(self):
        (self.folder / "loop").symlink_to("loop")
        for output, code, words in (("loop", 1, ["loop", "-o"]), ("loop/below", 1, ["loop", "-o"]), ("", 2, ["output"]),
                                    ("x" * 300, 1, ["-o"]), ("y/" + "x" * 256, 1, ["-o"])):
            self.refuse(code, words, "track", *self.frames, *QUICK, "-o", output)
        self.refuse(1, ["loop"], "track", "loop", *self.frames, *QUICK)
        self.refuse(1, ["xxx"], "track", "x" * 300, self.frames[0], *QUICK)
        self.refuse(1, ["loop"], "track", "--save-config", "loop")
        long = "z" * 250 + ".png"
        write_image(self.folder / long, speckle(120, 140, 0.3))
        self.track("--csv", frames=[self.frames[0], long], code=0)

    def test_exports_onto_a_disk_that_is_full(self):
        """Whatever the limit, the file is whole, or the one before is left and the message says why."""
        self.track()
        for to in ("mat", "npz", "csv", "netcdf"):
            earlier = ["export", "dic_out", "--to", to, "-o", "table", "--force", "--arrays", "u", "--frames", "1"]
            self.succeed(*earlier)
            before = (self.folder / "table").read_bytes()
            export = ["export", "dic_out", "--to", to, "-o", "table", "--force"]
            self.succeed(*export)
            size = (self.folder / "table").stat().st_size
            for limit in (100, 200, 4096, size // 3, size // 2, size - 4096, size - 1):
                with self.subTest(to=to, limit=limit):
                    (self.folder / "table").write_bytes(before)
                    bound = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                    self.refuse(1, ["cannot be written"], *export, preexec_fn=bound)
                    self.assertEqual((self.folder / "table").read_bytes(), before)
                    self.assertEqual([path.name for path in self.folder.glob(".dic-*")], [])
            done = self.dic(*export, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.folder / "table").stat().st_size, size)

    def test_a_current_folder_that_is_gone(self):
        command = f'mkdir gone && cd gone && rmdir ../gone && "{dic_program.PROGRAM}" track ' + " ".join(
            str(self.folder / name) for name in self.frames)
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Unexpected", done.stderr)

    def test_a_pipe_as_input_does_not_hang(self):
        os.mkfifo(self.folder / "pipe.png")
        self.refuse(1, ["regular file"], "track", "pipe.png", *self.frames)
        self.track(frames=[self.frames[0], "pipe.png", self.frames[1]], code=3)
        self.track("--output", "done", code=0)
        with open(self.folder / "sparse", "wb") as file:
            file.truncate(1 << 40)
        for name in ("pipe.png", "/dev/zero", "/dev/stdin", "sparse"):
            for option in ("--config", "--roi", "--camera", "--reference", "--times"):
                self.refuse(1, [name], "track", *self.frames, option, name, "-o", "new")
            self.refuse(1, [name], "probe", "done", "--point", "60,60", "--loads", name, "-o", "new")
            self.refuse(1, [name], "view", *self.frames, "--no-browser", "--config", name)
        self.refuse(1, ["folder"], "track", *self.frames, "--config", ".", "-o", "new")


if __name__ == "__main__":
    main()
