"""Tests check_includes.py: in a small tree that keeps all rules, each violation alone is reported."""

import tempfile
import unittest
from pathlib import Path

import check_includes

GOOD = {
    "cmake/DicOptions.cmake": "set(DIC_PUBLIC_SHARED_HEADERS\n  status.hpp)\n",
    "lib/shared/include/dic/shared/status.hpp": "",
    "lib/shared/include/dic/shared/rules.hpp": "#include <dic/shared/status.hpp>\n",
    "lib/include/dic/fields.hpp": "#include <dic/shared/status.hpp>\n#include <dic/version.hpp>\n",
    "lib/include/dic/image_io.hpp": "",
    "lib/include/dic/opencv.hpp": "#include <opencv2/core.hpp>\n",
    "lib/core/threads.hpp": "#include <vector>\n",
    "lib/image/read.cpp": "#include <opencv2/imgcodecs.hpp>\n#include \"core/threads.hpp\"\n",
    "lib/io/file.hpp": "",
    "lib/refine/backend.hpp": "#include <dic/fields.hpp>\n",
    "lib/refine/cuda/backend_cuda.cpp": '#include "refine/backend.hpp"\n#include <dic/kernels/refine.hpp>\n',
    "kernels/include/dic/kernels/refine.hpp": "#include <dic/shared/rules.hpp>\n",
    "kernels/common/launch.cuh": "#include <cuda_runtime.h>\n",
    "kernels/refine/iterate.cu": '#include <dic/kernels/refine.hpp>\n#include "common/launch.cuh"\n',
    "app/main.cpp": "#include <dic/fields.hpp>\n",
}
# File and added line -> expected report.
VIOLATIONS = [
    ("lib/image/read.cpp", '"io/file.hpp"', "image must not include lib/io/file.hpp"),
    ("lib/refine/backend.hpp", "<dic/kernels/refine.hpp>", "only CUDA files may include"),
    ("lib/refine/cuda/backend_cuda.cpp", '"common/launch.cuh"', "refine must not include kernels/common/launch.cuh"),
    ("lib/refine/backend.hpp", "<fstream>", "refine measures, and must not include <fstream>"),
    ("lib/refine/backend.hpp", "<dic/image_io.hpp>", "refine measures, and must not include <dic/image_io.hpp>"),
    ("lib/include/dic/fields.hpp", "<dic/image_io.hpp>", "refine measures, and must not include <dic/image_io.hpp>"),
    ("lib/io/file.hpp", "<CL/cl.h>", "only OpenCL files may include <CL/cl.h>"),
    ("lib/io/file.hpp", "<opencv2/videoio.hpp>", 'only the room "image" may include <opencv2/videoio.hpp>'),
    ("lib/include/dic/fields.hpp", '"core/threads.hpp"', "public headers must not include lib/core/threads.hpp"),
    ("lib/include/dic/fields.hpp", "<opencv2/core.hpp>", "public headers must not include <opencv2/core.hpp>"),
    ("lib/include/dic/fields.hpp", "<dic/shared/rules.hpp>", "it is not in DIC_PUBLIC_SHARED_HEADERS"),
    ("lib/shared/include/dic/shared/rules.hpp", "<dic/fields.hpp>", "dic/shared must not include lib/include"),
    ("lib/shared/include/dic/shared/rules.hpp", "<cuda_fp16.h>", "dic/shared must not include <cuda_fp16.h>"),
    ("kernels/refine/iterate.cu", "<dic/fields.hpp>", "kernels must not include lib/include/dic/fields.hpp"),
    ("kernels/common/launch.cuh", "<dic/fields.hpp>", "kernels must not include lib/include/dic/fields.hpp"),
    ("kernels/refine/iterate.cu", '"refine/backend.hpp"', "kernels must not include lib/refine/backend.hpp"),
    ("kernels/include/dic/kernels/refine.hpp", '"common/launch.cuh"', "launch headers must not include kernels/common"),
    ("app/main.cpp", '"core/threads.hpp"', "app must not include lib/core/threads.hpp"),
    ("app/main.cpp", "<dic/kernels/refine.hpp>", "app must not include kernels/include"),
]


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in GOOD.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def include(self, name, *included):
        lines = "".join(f"#include {file}\n" for file in included)
        self.write(name, GOOD.get(name, "") + lines)

    def problems(self):
        return list(check_includes.all_problems(self.root))

    def expect(self, message):
        """Expects a problem with this message, possibly among others that follow from the same violation."""
        found = self.problems()
        self.assertTrue(any(message in problem for problem in found), f"expected {message!r}, got {found}")

    def test_good_tree_has_no_problems(self):
        self.assertEqual(self.problems(), [])

    def test_every_violation_is_reported(self):
        for name, included, message in VIOLATIONS:
            with self.subTest(f"{name} includes {included}"):
                self.include(name, included)
                self.expect(message)
                self.include(name)

    def test_circle_of_files(self):
        for suffix in ("hpp", "cuh"):
            with self.subTest(suffix):
                self.include(f"kernels/refine/a.{suffix}", f'"refine/b.{suffix}"')
                self.include(f"kernels/refine/b.{suffix}", f'"c.{suffix}"')
                self.include(f"kernels/refine/c.{suffix}", f'"refine/a.{suffix}"')
                self.expect(f"in a circle: kernels/refine/a.{suffix} -> kernels/refine/b.{suffix}")

    def test_file_that_includes_itself(self):
        self.include("lib/core/threads.hpp", '"core/threads.hpp"')
        self.expect("in a circle: lib/core/threads.hpp")

    def test_circle_of_folders_without_circle_of_files(self):
        self.include("kernels/fft/plan.hpp")
        self.include("kernels/common/device.cpp", '"fft/plan.hpp"')
        self.include("kernels/fft/split.cu", '"common/launch.cuh"')
        self.expect("kernels/common and kernels/fft include each other in a circle")
        self.assertFalse(any("files include" in problem for problem in self.problems()))

    def test_circle_of_rooms(self):
        self.include("lib/core/threads.hpp", '"io/file.hpp"')
        self.include("lib/io/csv.cpp", '"core/threads.hpp"')
        self.expect("core and io include each other in a circle")

    def test_room_without_rule(self):
        self.include("lib/unknown/file.cpp")
        self.expect('"unknown" has no rule')

    def test_installed_header_that_nothing_needs(self):
        self.write("cmake/DicOptions.cmake", "set(DIC_PUBLIC_SHARED_HEADERS status.hpp rules.hpp)\n")
        self.expect("no public header includes rules.hpp")


if __name__ == "__main__":
    unittest.main()
