"""A system that limits the number of threads: python test_threads.py DIC FEW_THREADS"""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import dic_program
from dic_program import ProgramTest, main

FEW_THREADS = sys.argv.pop()


class FewThreadsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        if dic_program.is_sanitized():
            self.skipTest("sanitizers want to be loaded first")
        self.frames = self.sequence([(0, 0), (0.3, 0.2), (0.6, 0.4)])

    def environment(self, threads):
        return {**os.environ, "LD_PRELOAD": FEW_THREADS, "DIC_TEST_THREADS": str(threads)}

    def check(self, *arguments, most):
        """The program ends with a message until it gets enough threads."""
        codes = []
        for threads in (0, 1, 2, 3, 5, 8, 13, 21, most):
            done = self.dic(*arguments, "--threads", "4", env=self.environment(threads))
            self.assertIn(done.returncode, (0, 1), (threads, done.stderr))
            if done.returncode == 1:
                self.assertEqual(done.stderr, "dic: The system starts no more threads: use a smaller --threads, or raise its limits.\n")
            codes.append(done.returncode)
        self.assertEqual((codes[0], codes[-1]), (1, 0))

    def test_track(self):
        self.check("track", *self.frames, "--subset", "21", "--step", "20", "--csv", "--force", most=300)

    def test_match(self):
        self.check("match", *self.frames[:2], "--template-rect", "20,20,30,30", most=300)

    def test_view(self):
        for threads in (0, 1, 2, 3, 5, 8, 17, 100):
            with subprocess.Popen([dic_program.PROGRAM, "view", "--no-browser", *self.frames], cwd=self.folder, text=True,
                                  env=self.environment(threads), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
                address = re.search(r"http://\S+", program.stdout.readline())
                answered = 0
                if address:
                    try:
                        with urllib.request.urlopen(address[0] + "api/state", timeout=60) as answer:
                            answered = answer.status
                    except (urllib.error.URLError, ConnectionError):
                        pass
                if answered:
                    program.terminate()
                message = program.communicate(timeout=60)[1]
            self.assertIn(program.returncode, (0, 1, 130), (threads, message))
            if not answered:
                self.assertIn("The system starts no more threads", message)
            self.assertEqual(answered == 200, threads > 3, (threads, message))


if __name__ == "__main__":
    main()
