"""Full or closed standard streams, whose output must not end up in files: python test_streams.py DIC"""

import os
import shutil
import subprocess

import h5py

import dic_program
from dic_program import ProgramTest, main, speckle, write_image

QUICK = ("--subset", "21", "--step", "10", "--no-pictures")


class StreamsTest(ProgramTest):
    def run_in_shell(self, arguments, redirection):
        command = f'"{dic_program.PROGRAM}" {arguments} {redirection}'
        return subprocess.run(["bash", "-c", command], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)

    def test_lost_output_is_noticed(self):
        self.sequence([(0, 0), (0.3, 0.2)])
        for arguments in ("info", "--version", "help track", "match frame_0.png frame_1.png --template-rect 20,20,30,30",
                          "match frame_0.png --template-rect 20,20,30,30 --json",
                          "track frame_0.png frame_1.png --force " + " ".join(QUICK), "bench match --help",
                          "synth -o new --width 64 --height 64"):
            for redirection in ("> /dev/full", ">&-"):
                done = self.run_in_shell(arguments, redirection)
                self.assertEqual(done.returncode, 1, arguments + redirection + done.stderr)
                self.assertIn("could not be written", done.stderr)
                shutil.rmtree(self.folder / "new", ignore_errors=True)
        self.assertEqual(len(self.run_json()["frames"]), 1)  # the result itself is complete

    def test_a_reader_that_ends(self):
        """As `| head`: the program ends soon and says nothing, whether its parent ignores SIGPIPE or not."""
        environment = {**os.environ, "TMPDIR": str(self.folder)}
        for arguments in ("validate --quick --step 40 textureless", "bench correlate --list", "track --help", "help track", "info"):
            for parent in ("", "trap '' PIPE; "):
                command = f'set -o pipefail; {parent}("{dic_program.PROGRAM}" {arguments}; echo $? > code) | true'
                done = subprocess.run(["bash", "-c", command], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True, timeout=60, env=environment)
                self.assertEqual(done.stderr, "", arguments + parent)
                self.assertIn((self.folder / "code").read_text().strip(), ("0", "141"), arguments)
                self.assertEqual([path.name for path in self.folder.iterdir()], ["code"])

    def test_closed_streams(self):
        """Output of libraries must not end up in files whose descriptors have the numbers of closed streams."""
        self.sequence([(0, 0), (0.3, 0.2)])
        damaged = (self.folder / "frame_0.png").read_bytes()
        (self.folder / "damaged.png").write_bytes(damaged[:60] + b"xx" + damaged[62:])
        done = self.run_in_shell("track frame_0.png damaged.png frame_1.png --quiet " + " ".join(QUICK), "0>&- 1>&- 2>&-")
        self.assertEqual(done.returncode, 3)
        with h5py.File(self.folder / "dic_out/result.vtkhdf") as file:
            self.assertEqual(len(file["VTKHDF/PointData/u"]), 1)
        self.assertEqual(self.run_json()["frames"][0]["file"], "damaged.png")


if __name__ == "__main__":
    main()
