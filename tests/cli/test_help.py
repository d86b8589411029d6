"""Help, manual pages and completion: python test_help.py DIC"""

import os
import re
import shutil
import subprocess

import dic_program
from dic_program import ProgramTest, main

COMMANDS = ["", "track", "match", "bench", "bench track", "synth", "help"]


class HelpTest(ProgramTest):
    maxDiff = None

    def text(self, *arguments, columns=80):
        done = subprocess.run([dic_program.PROGRAM, *arguments], capture_output=True, text=True,
                              env={**os.environ, "COLUMNS": str(columns)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def options(self, command):
        return sorted(set(re.findall(r"^ +(?:-\w,)?(--[\w-]+)", self.text(*command.split(), "--help"), re.MULTILINE)))

    def test_help_of_track_begins_with_what_a_new_user_needs(self):
        text = self.text("track", "--help")
        first_screen = "\n".join(text.splitlines()[:40])
        for words in ("Example: dic track frames/*.png", "FRAMES", "--reference", "--roi-rect", "--subset", "--step", "--strain-window",
                      "--output", "--scale", "--csv"):
            self.assertIn(words, first_screen)
        headings = re.findall(r"^(\w[\w ]*):$", text.split("Examples:")[0], re.MULTILINE)
        self.assertEqual(headings, ["Positionals", "Options", "Common options", "Input", "Measurement", "Output", "Running", "Advanced"])
        advanced = text.split("\nAdvanced:\n")[1]
        for name in ("gpu-memory", "tolerance", "max-iterations", "min-zncc", "noise", "weights", "anti-bias", "no-split", "no-outliers",
                     "global-resolution", "max-memory"):
            self.assertRegex(advanced, rf"\n  --{name}\b")

    def test_manual_has_the_headings_of_the_help(self):
        self.text("help", "--manual", str(self.folder / "man1"))
        headings = re.findall(r"^\.SS (.+)$", (self.folder / "man1/dic-track.1").read_text(), re.MULTILINE)
        self.assertEqual(headings, ["Common options", "Input", "Measurement", "Output", "Running", "Advanced"])

    def test_the_older_name_of_an_option_is_not_shown(self):
        self.text("help", "--manual", str(self.folder / "man1"))
        texts = [self.text("track", "--help"), self.text("help", "--completion", "bash"), (self.folder / "man1/dic-track.1").read_text()]
        for text in texts:
            self.assertNotIn("no-pictures", text.replace("\\-", "-"))

    def test_help_of_a_command(self):
        for command in COMMANDS:
            self.assertEqual(self.text("help", *command.split()), self.text(*command.split(), "--help"))
        self.assertIn("Usage: dic bench track", self.text("help", "bench", "track"))
        self.refuse(2, ["nothing", "not a command"], "help", "nothing")
        self.refuse(2, ['"trakc" is not a command (did you mean track?)'], "trakc")
        self.refuse(2, ["corelate (did you mean correlate?)"], "bench", "corelate")
        for typed, meant in (("--stepp", "--step"), ("--subset-size", "--subset"), ("--strain-windw=9", "--strain-window")):
            self.refuse(2, [f"did you mean {meant}?"], "track", "a.png", typed)
        done = self.dic("track", "a.png", "--zzzzzz")
        self.assertEqual((done.returncode, "mean" in done.stderr), (2, False))
        self.refuse(2, ["nothing", "not a command of bench"], "help", "bench", "nothing")

    def test_lines_fit_the_terminal(self):
        for command in COMMANDS:
            for columns in (50, 80, 110):
                options = self.text(*command.split(), "--help", columns=columns).split("Examples:")[0]
                for line in options.splitlines():
                    if line.startswith("  "):
                        self.assertTrue(len(line) <= columns or len(line.split()) < 3, line)

    def test_manual_pages(self):
        self.text("help", "--manual", str(self.folder / "man1"))
        pages = {path.name: path.read_text() for path in (self.folder / "man1").iterdir()}
        self.assertTrue({"dic.1", "dic-track.1", "dic-bench-track.1"} <= set(pages))
        for command in COMMANDS:
            page = pages["-".join(["dic", *command.split()]) + ".1"].replace("\\-", "-")
            for option in self.options(command):
                self.assertIn("\\fB" + option + "\\fR", page)
        if shutil.which("groff"):
            for path in (self.folder / "man1").iterdir():
                done = subprocess.run(["groff", "-man", "-Tascii", "-ww", path], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def complete(self, *words):
        """Completions that bash offers for the last word."""
        script = (f'source <("{dic_program.PROGRAM}" help --completion bash)\n'
                  'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dic; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_completion_of_bash(self):
        self.assertIn("track", self.complete("dic", ""))
        self.assertEqual(self.complete("dic", "tr"), ["track"])
        self.assertEqual(self.complete("dic", "track", "--ord"), ["--order"])
        self.assertEqual(self.complete("dic", "track", "a.png", "--order", ""), ["0", "1", "2", "auto"])
        self.assertEqual(self.complete("dic", "plot", "dic_out", "--field", "von"), ["von_mises"])
        self.assertEqual(self.complete("dic", "plot", "dic_out", "--field", "u,von"), ["u,von_mises"])
        self.assertEqual(self.complete("dic", "track", "a.png", "--device", "cuda:"), ["cuda:all"])
        self.assertEqual(self.complete("dic", "bench", "tr"), ["track"])
        for command in COMMANDS:
            self.assertEqual(sorted(self.complete("dic", *command.split(), "--")), self.options(command))

    def test_completion_of_other_shells(self):
        for shell in ("zsh", "fish"):
            script = self.text("help", "--completion", shell)
            for option in self.options("track"):
                self.assertIn(option if shell == "zsh" else "-l " + option[2:], script)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        if shutil.which("fish"):
            script = self.text("help", "--completion", "fish") + "\ncomplete -C 'dic bench track --interpol'"
            done = subprocess.run(["fish", "--no-config"], input=script, capture_output=True, text=True)
            self.assertIn("--interpolation", done.stdout)


if __name__ == "__main__":
    main()
