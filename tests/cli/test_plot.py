"""dic plot: figures of known fields."""

import cv2
import numpy as np

from dic_program import ProgramTest, main


class PlotTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.succeed("synth", "-o", "seq", "--frames", "3", "--width", "160", "--height", "200", "--motion", "affine",
                     "--ux", "0.02")
        self.succeed("track", "seq/frame_*.png", "--step", "5", "--pictures", "none")

    def plotted(self, *arguments):
        self.succeed("plot", "dic_out", "-o", "figures", "--force", *arguments)
        return sorted((self.folder / "figures").iterdir())

    def test_colours_are_those_of_the_values(self):
        # u grows from left to right through zero: blue, light grey, red.
        file, = self.plotted("--field", "u", "--range=-1,1", "--opacity", "1", "--heading", "none", "--width", "100",
                             "--no-scale-bar", "--no-outline", "--dpi", "72")
        picture = cv2.imread(str(file)).astype(int)
        coloured = np.ptp(picture, axis=2) > 60
        row = picture.shape[0] // 2
        image = np.flatnonzero(coloured[row])
        left, right = picture[row, image[2]], picture[row, image[image < 0.72 * picture.shape[1]][-3]]
        self.assertGreater(left[0], left[2])
        self.assertGreater(right[2], right[0])

    def test_formats_open(self):
        for form, start in (("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
            files = self.plotted("--field", "exx,magnitude", "--frames", "all", "--format", form, "--vectors", "--contours")
            made = [file for file in files if file.suffix == "." + form]
            self.assertEqual([file.stem for file in made], ["exx_0001", "exx_0002", "magnitude_0001", "magnitude_0002"])
            for file in made:
                self.assertTrue(file.read_bytes().startswith(start))

    def test_strain_has_a_unit(self):
        # exx is 0.0202 everywhere in the last frame: one colour, which is the middle of equal ranges in all units.
        def colour(unit, values):
            file, = self.plotted("--field", "exx", "--opacity", "1", "--heading", "none", "--no-scale-bar", "--dpi", "72",
                                 "--strain-unit", unit, f"--range={values}")
            picture = cv2.imread(str(file)).astype(int)
            return picture[picture.shape[0] // 2, picture.shape[1] // 4]

        middle = colour("1", "0.01,0.03")
        self.assertLess(np.abs(colour("%", "1,3") - middle).max(), 12)
        self.assertLess(np.abs(colour("microstrain", "10000,30000") - middle).max(), 12)
        self.assertGreater(np.abs(colour("%", "2,4") - middle).max(), 40)

    def test_status_among_the_fields_is_left_out(self):
        done = self.succeed("plot", "dic_out", "-o", "figures", "--field", "u,status,v")
        self.assertIn("status is left out", done.stderr)
        self.assertEqual(sorted(file.name for file in (self.folder / "figures").iterdir()), ["u_0002.png", "v_0002.png"])

    def test_refusals(self):
        self.refuse(2, ("nothing",), "plot", "dic_out", "--field", "nothing")
        self.refuse(2, ("dic view",), "plot", "dic_out", "--field", "status")
        self.refuse(2, ("1 to 2",), "plot", "dic_out", "--frames", "9")
        self.refuse(2, ("range",), "plot", "dic_out", "--range", "2,1")
        self.plotted("--field", "u")
        self.refuse(1, ("--force",), "plot", "dic_out", "-o", "figures", "--field", "u")


main()
