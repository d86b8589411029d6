"""`dic vsg` from the outside: python test_vsg.py DIC"""

import csv
import json

from dic_program import ProgramTest, main


class VsgTest(ProgramTest):
    def images(self):
        size = ("--width", "320", "--height", "240", "--noise", "2", "--seed", "4")
        self.succeed("synth", "-o", "rest", *size, "--u", "0", "--v", "0")
        self.succeed("synth", "-o", "loaded", *size, "--motion", "chirp", "--amplitude", "0.5", "--period-min", "60")
        return "rest/frame_0000.png", "loaded/frame_0001.png", "rest/frame_0001.png"

    def test_longer_gauges_have_less_noise_and_less_signal(self):
        reference, loaded, rest = self.images()
        self.succeed("vsg", reference, loaded, "--at-rest", rest, "--subsets", "21,33", "--windows", "5,9,15",
                     "-o", "sweep")
        results = json.loads((self.folder / "sweep/vsg.json").read_text())
        self.assertEqual([(r["subset"], r["window"]) for r in results],
                         [(subset, window) for subset in (21, 33) for window in (5, 9, 15)])
        for result in results:
            self.assertEqual(result["gauge"], (result["window"] - 1) * 5 + result["subset"])
            self.assertAlmostEqual(result["exx"]["at_rest"] / result["exx"]["sigma"], 1, delta=0.3)
        for shorter, longer in ((0, 1), (1, 2), (3, 4), (4, 5)):
            self.assertGreater(results[longer]["resolution"], results[shorter]["resolution"])
            self.assertLess(results[longer]["exx"]["sigma"], results[shorter]["exx"]["sigma"])
            self.assertLess(results[longer]["exx"]["peak"], results[shorter]["exx"]["peak"])
        with open(self.folder / "sweep/vsg.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 6)
        self.assertAlmostEqual(float(rows[5]["peak_exx"]), results[5]["exx"]["peak"], delta=1e-6)
        for picture in ("vsg_resolution.png", "vsg_peak.png"):
            self.assertTrue((self.folder / "sweep" / picture).exists())
        self.refuse(1, ["sweep", "--force"], "vsg", reference, loaded, "-o", "sweep")
        self.refuse(2, ["odd"], "vsg", reference, loaded, "--subsets", "20", "-o", "other")


if __name__ == "__main__":
    main()
