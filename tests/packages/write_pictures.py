"""Writes frames.jpg, frames.tif and frames.avi (Motion JPEG) into a folder: write_pictures.py FOLDER"""

import pathlib
import sys

import cv2

folder = pathlib.Path(sys.argv[1])
frames = sorted((pathlib.Path(__file__).parents[2] / "data/speckle_small").glob("*.png"))
image = cv2.imread(str(frames[0]), cv2.IMREAD_GRAYSCALE)
cv2.imwrite(str(folder / "frames.jpg"), image)
cv2.imwrite(str(folder / "frames.tif"), image)
video = cv2.VideoWriter(str(folder / "frames.avi"), cv2.CAP_OPENCV_MJPEG, cv2.VideoWriter_fourcc(*"MJPG"), 10, image.shape[::-1])
for frame in frames[:3]:
    video.write(cv2.imread(str(frame)))
video.release()
