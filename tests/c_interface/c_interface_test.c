/* The C interface from C: one pair, a stream, matching, errors. Returns the number of what is wrong. */

#include <dic/dic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWidth = 120, kHeight = 100 };

static int wrong = 0;

#define EXPECT(condition)                                                           \
  do {                                                                              \
    if (!(condition)) {                                                             \
      ++wrong;                                                                      \
      fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, dic_last_error()); \
    }                                                                               \
  } while (0)

/* Waves that moved by (u, v) px: exact between pixels. */
static void fill(uint8_t* image, double u, double v) {
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      double grey = 127;
      for (int k = 1; k <= 24; ++k) {
        const double angle = 2.4 * k, frequency = 0.3 + 0.03 * k;
        grey += 9 * sin(frequency * (cos(angle) * (x - u) + sin(angle) * (y - v)) + 1.7 * k * k);
      }
      image[y * kWidth + x] = (uint8_t)lrint(fmin(fmax(grey, 0), 255));
    }
}

/* The largest deviation of the array's values from `truth` at ok points; -1 where there are none. */
static double deviation(const dic_result* result, const char* name, double truth) {
  int32_t nx = 0, ny = 0;
  EXPECT(dic_result_grid(result, NULL, NULL, NULL, &nx, &ny) == DIC_OK);
  const int64_t nodes = (int64_t)nx * ny;
  double* values = malloc(sizeof(double) * nodes);
  double* status = malloc(sizeof(double) * nodes);
  EXPECT(dic_result_copy(result, name, values, nodes) == DIC_OK);
  EXPECT(dic_result_copy(result, "status", status, nodes) == DIC_OK);
  double largest = -1;
  for (int64_t i = 0; i < nodes; ++i)
    if (status[i] == 0 && !isnan(values[i])) largest = fmax(largest, fabs(values[i] - truth));
  free(values);
  free(status);
  return largest;
}

static void test_pair(const uint8_t* reference, const uint8_t* current) {
  dic_options* options = NULL;
  dic_result* result = NULL;
  EXPECT(dic_options_create(&options) == DIC_OK);
  EXPECT(dic_options_set(options, "subset", "21") == DIC_OK);
  EXPECT(dic_options_set(options, "step", "10") == DIC_OK);
  EXPECT(dic_options_set(options, "roi-rect", "15,15,90,70") == DIC_OK);
  EXPECT(dic_track_pair(options, reference, current, DIC_U8, kWidth, kHeight, 0, &result) == DIC_OK);
  int32_t x0 = 0, y0 = 0, step = 0, nx = 0, ny = 0;
  EXPECT(dic_result_grid(result, &x0, &y0, &step, &nx, &ny) == DIC_OK);
  EXPECT(x0 == 15 && y0 == 15 && step == 10 && nx == 9 && ny == 7);
  const double u = deviation(result, "u", 1.25), v = deviation(result, "v", -0.5);
  EXPECT(u >= 0 && u < 0.03);
  EXPECT(v >= 0 && v < 0.03);
  const double exx = deviation(result, "exx", 0);
  EXPECT(exx >= 0 && exx < 0.002);
  EXPECT(strcmp(dic_result_error(result), "") == 0);
  double few[3];
  EXPECT(dic_result_copy(result, "u", few, 3) == DIC_USAGE_ERROR);
  EXPECT(strstr(dic_last_error(), "63 values") != NULL);
  EXPECT(dic_result_copy(result, "w", few, 100) == DIC_USAGE_ERROR);
  dic_result_destroy(result);

  uint8_t mask[kWidth * kHeight];
  memset(mask, 0, sizeof mask);
  for (int y = 30; y < 60; ++y) memset(mask + y * kWidth + 30, 1, 40);
  EXPECT(dic_options_set(options, "roi-rect", "") == DIC_OK);
  EXPECT(dic_options_set_mask(options, mask, kWidth, kHeight, 0) == DIC_OK);
  EXPECT(dic_track_pair(options, reference, current, DIC_U8, kWidth, kHeight, 0, &result) == DIC_OK);
  EXPECT(dic_result_grid(result, &x0, &y0, NULL, &nx, &ny) == DIC_OK);
  EXPECT(x0 == 30 && y0 == 30 && nx == 4 && ny == 3);
  dic_result_destroy(result);
  dic_options_destroy(options);
}

static void test_stream(const uint8_t* reference, const uint8_t* current) {
  dic_stream* stream = NULL;
  dic_result* result = NULL;
  int64_t index = -1;
  EXPECT(dic_stream_create(NULL, reference, DIC_U8, kWidth, kHeight, 0, 4, &stream) == DIC_OK);
  EXPECT(dic_stream_wait(stream, &result) == DIC_OK && result == NULL);
  for (int i = 0; i < 3; ++i) {
    EXPECT(dic_stream_push(stream, i == 1 ? reference : current, DIC_U8, kWidth, kHeight, 0, &index) ==
           DIC_OK);
    EXPECT(index == i);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT(dic_stream_wait(stream, &result) == DIC_OK && result != NULL);
    EXPECT(dic_result_index(result, &index) == DIC_OK && index == i);
    const double u = deviation(result, "u", i == 1 ? 0 : 1.25);
    EXPECT(u >= 0 && u < 0.05);
    dic_result_destroy(result);
  }
  EXPECT(dic_stream_poll(stream, &result) == DIC_OK && result == NULL);
  EXPECT(dic_stream_push(stream, current, DIC_U8, kWidth, kHeight / 2, 0, NULL) == DIC_OK);
  EXPECT(dic_stream_wait(stream, &result) == DIC_OK && result != NULL);
  EXPECT(strlen(dic_result_error(result)) > 0);
  dic_result_destroy(result);
  EXPECT(dic_stream_reset(stream, current, DIC_U8, kWidth, kHeight, 0) == DIC_OK);
  EXPECT(dic_stream_push(stream, current, DIC_U8, kWidth, kHeight, 0, &index) == DIC_OK && index == 0);
  EXPECT(dic_stream_cancel(stream) == DIC_OK);
  dic_stream_destroy(stream);
}

static void test_match(const uint8_t* reference, const uint8_t* current) {
  uint8_t pattern[20 * 20];
  for (int y = 0; y < 20; ++y) memcpy(pattern + 20 * y, reference + (y + 40) * kWidth + 50, 20);
  double match[5] = {0};
  int32_t found = -1;
  EXPECT(dic_match(pattern, DIC_U8, 20, 20, current, DIC_U8, kWidth, kHeight, 0.8, NULL, 1, match, &found) ==
         DIC_OK);
  EXPECT(found == 1 && fabs(match[0] - 51.25) < 0.05 && fabs(match[1] - 39.5) < 0.05 && match[4] > 0.98);
}

static void test_match_poses(const uint8_t* reference, const uint8_t* current) {
  const dic_image pattern = {reference + 30 * kWidth + 40, DIC_U8, 40, 40, kWidth};
  const dic_image image = {current, DIC_U8, kWidth, kHeight, 0};
  dic_pose_search search = {-180, 180, 1, 1, 0.8, 1, 0};
  double match[DIC_POSE_COLUMNS] = {0};
  int32_t found = -1;
  EXPECT(dic_match_poses(&pattern, NULL, &image, &search, match, &found) == DIC_OK);
  EXPECT(found == 1 && fabs(match[0] - 41.25) < 0.05 && fabs(match[1] - 29.5) < 0.05 && match[4] > 0.95);
  EXPECT(fabs(match[5]) < 0.2 && match[6] == 1 && match[7] > 0 && match[9] > 0 && match[10] == 0);
  EXPECT(match[11] > 0.9 && match[11] <= 1);
  search.least_scale = 2;
  EXPECT(dic_match_poses(&pattern, NULL, &image, &search, match, &found) == DIC_USAGE_ERROR && found == 0);
  EXPECT(dic_match_poses(&pattern, NULL, &image, NULL, match, &found) == DIC_USAGE_ERROR);
}

static void test_errors(const uint8_t* reference) {
  dic_options* options = NULL;
  dic_result* result = NULL;
  EXPECT(dic_options_create(NULL) == DIC_USAGE_ERROR);
  EXPECT(dic_options_create(&options) == DIC_OK);
  EXPECT(dic_options_set(options, "subsett", "21") == DIC_USAGE_ERROR);
  EXPECT(strstr(dic_last_error(), "subsett") != NULL);
  EXPECT(dic_options_set(options, "subset", "a") == DIC_USAGE_ERROR);
  EXPECT(dic_options_set(options, "subset", NULL) == DIC_USAGE_ERROR);
  EXPECT(dic_options_set(options, "roi", "none.png") == DIC_FILE_ERROR);
  EXPECT(dic_options_set(options, "subset", "20") == DIC_OK);
  EXPECT(dic_track_pair(options, reference, reference, DIC_U8, kWidth, kHeight, 0, &result) ==
         DIC_USAGE_ERROR);
  EXPECT(strstr(dic_last_error(), "odd") != NULL && result == NULL);
  EXPECT(dic_options_set(options, "subset", "21") == DIC_OK);
  EXPECT(dic_options_set(options, "device", "cuda:99") == DIC_OK);
  EXPECT(dic_track_pair(options, reference, reference, DIC_U8, kWidth, kHeight, 0, &result) ==
         DIC_DEVICE_ERROR);
  EXPECT(dic_track_pair(NULL, NULL, reference, DIC_U8, kWidth, kHeight, 0, &result) == DIC_USAGE_ERROR);
  EXPECT(dic_track_pair(NULL, reference, reference, (dic_scalar)9, kWidth, kHeight, 0, &result) ==
         DIC_USAGE_ERROR);
  EXPECT(dic_result_copy(NULL, "u", NULL, 0) == DIC_USAGE_ERROR);
  dic_options_destroy(options);
  dic_options_destroy(NULL);
  dic_result_destroy(NULL);
  dic_stream_destroy(NULL);
}

/* Measures the fake camera, for which the tests install Aravis. */
static void test_live(void) {
  dic_live* live = NULL;
  dic_options* options = NULL;
  EXPECT(dic_options_create(&options) == DIC_OK);
  EXPECT(dic_options_set(options, "subset", "21") == DIC_OK);
  EXPECT(dic_options_set(options, "step", "32") == DIC_OK);
  EXPECT(dic_live_create(options, "camera=fake\ndrop=some", &live) == DIC_USAGE_ERROR);
  EXPECT(dic_live_create(options, "camera", &live) == DIC_USAGE_ERROR);
  EXPECT(dic_live_create(options, NULL, &live) == DIC_USAGE_ERROR);
  EXPECT(live == NULL);
  EXPECT(dic_live_create(options, "camera=fake\nregion=0,0,128,128\nfps=20\nuntil=3", &live) == DIC_OK);
  int frames = 0;
  const char* line = NULL;
  char last[500] = "";
  dic_result* result = NULL;
  while (live && dic_live_next(live, &line, &result) == DIC_OK && line) {
    snprintf(last, sizeof last, "%s", line);
    if (result) {
      ++frames;
      EXPECT(strstr(line, "\"latency\":") != NULL);
      EXPECT(deviation(result, "v", 0) >= 0); /* some points are measured */
    }
    dic_result_destroy(result);
  }
  EXPECT(frames == 3);
  EXPECT(strstr(last, "\"event\":\"end\"") != NULL);
  EXPECT(live && dic_live_next(live, &line, NULL) == DIC_OK && line == NULL);
  EXPECT(dic_live_stop(NULL) == DIC_USAGE_ERROR);
  dic_live_destroy(live);
  dic_live_destroy(NULL);
  dic_options_destroy(options);
}

/* A plane at 300 mm, moved by (dx, dy, dz), as a camera sees it that turned about the plane's middle: exact rays. */
static dic_image view(double degrees, double dx, double dy, double dz) {
  enum { kColumns = 200, kRows = 160 };
  const double f = 800, z = 300, s = sin(degrees * acos(-1.0) / 180), c = cos(degrees * acos(-1.0) / 180);
  uint8_t* pixels = malloc(kColumns * kRows);
  for (int k = 0; k < kColumns * kRows; ++k) {
    const double px = (k % kColumns - (kColumns - 1) / 2.0) / f, py = (k / kColumns - (kRows - 1) / 2.0) / f;
    const double depth = (dz + z * c) / (px * s + c);
    const double x = (px * c - s) * depth + z * s - dx, y = py * depth - dy;
    double grey = 127;
    for (int n = 1; n <= 30; ++n)
      grey += 9 * cos((1 + 0.06 * n) * (cos(2.4 * n) * x + sin(2.4 * n) * y) + 1.7 * n * n);
    pixels[k] = (uint8_t)lrint(fmin(fmax(grey, 0), 255));
  }
  const dic_image image = {pixels, DIC_U8, kColumns, kRows, 0};
  return image;
}

static void write_rig(const char* path) {
  FILE* file = fopen(path, "w");
  for (int k = 0; k < 2; ++k)
    fprintf(file, "Cam%d_Fx [pixels];800\nCam%d_Fy [pixels];800\nCam%d_Cx [pixels];99.5\nCam%d_Cy [pixels];79.5\n", k, k, k, k);
  fputs("Tx [mm];-102.6060429977\nTy [mm];0\nTz [mm];18.0922137642\nTheta [deg];0\nPhi [deg];20\nPsi [deg];0\n", file);
  fclose(file);
}

/* The largest |value - truth| / sigma of an array at ok points; -1 without any. */
static double in_sigmas(const dic_result* result, const char* name, const char* sigma_name, double truth) {
  int32_t nx = 0, ny = 0;
  EXPECT(dic_result_grid(result, NULL, NULL, NULL, &nx, &ny) == DIC_OK);
  const int64_t nodes = (int64_t)nx * ny;
  double* values = malloc(sizeof(double) * nodes);
  double* sigma = malloc(sizeof(double) * nodes);
  double* status = malloc(sizeof(double) * nodes);
  EXPECT(dic_result_copy(result, name, values, nodes) == DIC_OK);
  EXPECT(dic_result_copy(result, sigma_name, sigma, nodes) == DIC_OK);
  EXPECT(dic_result_copy(result, "status", status, nodes) == DIC_OK);
  double largest = -1;
  for (int64_t i = 0; i < nodes; ++i)
    if (status[i] == 0) largest = fmax(largest, fabs(values[i] - truth) / sigma[i]);
  free(values);
  free(sigma);
  free(status);
  return largest;
}

static void test_stereo(void) {
  const char* rig = "c_interface_rig.caldat";
  const char* names[] = {"Z", "U", "V", "W"};
  const char* sigmas[] = {"sigma_Z", "sigma_U", "sigma_V", "sigma_W"};
  const double truth[] = {300, 0.3, -0.2, 0.4};
  dic_image images[4] = {view(0, 0, 0, 0), view(20, 0, 0, 0), view(0, 0.3, -0.2, 0.4), view(20, 0.3, -0.2, 0.4)};
  dic_options* options = NULL;
  dic_stereo* stereo = NULL;
  dic_result* result = NULL;
  double distance = -1, sd = -1;
  int64_t index = -1;
  write_rig(rig);
  EXPECT(dic_options_create(&options) == DIC_OK);
  EXPECT(dic_options_set(options, "subset", "21") == DIC_OK);
  EXPECT(dic_stereo_create(options, rig, NULL, &images[0], &images[1], &stereo) == DIC_OK);
  EXPECT(dic_stereo_reference(stereo, &result) == DIC_OK);
  EXPECT(deviation(result, "Z", 300) >= 0 && deviation(result, "Z", 300) < 0.1);
  EXPECT(deviation(result, "U", 0) == 0);
  dic_result_destroy(result);
  EXPECT(dic_stereo_track(stereo, &images[2], &images[3], &result) == DIC_OK);
  for (int k = 0; k < 4; ++k) {
    const double worst = in_sigmas(result, names[k], sigmas[k], truth[k]);
    EXPECT(worst > 0 && worst < 7);
  }
  EXPECT(deviation(result, "exx", 0) < 5e-3 && deviation(result, "e1", 0) >= 0);
  EXPECT(deviation(result, "epipolar", 0) < 0.1);
  EXPECT(dic_stereo_epipolar(stereo, &distance, &sd) == DIC_OK);
  EXPECT(distance >= 0 && distance < 0.05 && sd > 0 && sd < 0.05);
  EXPECT(dic_result_index(result, &index) == DIC_OK && index == 1);
  dic_result_destroy(result);
  result = NULL;

  images[3].height = 100;
  EXPECT(dic_stereo_track(stereo, &images[2], &images[3], &result) == DIC_USAGE_ERROR && result == NULL);
  EXPECT(dic_stereo_track(stereo, NULL, &images[3], &result) == DIC_USAGE_ERROR);
  images[3].height = images[2].height;
  EXPECT(dic_stereo_track(stereo, &images[2], &images[3], &result) == DIC_OK);
  EXPECT(dic_result_index(result, &index) == DIC_OK && index == 2);
  dic_result_destroy(result);
  dic_stereo_destroy(stereo);

  EXPECT(dic_stereo_create(options, rig, "axes=plane\nremove-rigid-motion=true\n", &images[0], &images[1], &stereo) ==
         DIC_OK);
  EXPECT(dic_stereo_track(stereo, &images[2], &images[3], &result) == DIC_OK);
  EXPECT(deviation(result, "W", 0) < 0.1 && deviation(result, "Z", 0) < 0.1);
  dic_result_destroy(result);
  dic_stereo_destroy(stereo);

  EXPECT(dic_stereo_create(options, "missing.caldat", NULL, &images[0], &images[1], &stereo) == DIC_FILE_ERROR);
  EXPECT(stereo == NULL);
  const char* wrong_settings[] = {"axes=world", "scale=2", "axes", "correct-rig=perhaps", "axes-points=1,2"};
  for (int k = 0; k < 5; ++k)
    EXPECT(dic_stereo_create(options, rig, wrong_settings[k], &images[0], &images[1], &stereo) == DIC_USAGE_ERROR);
  EXPECT(dic_options_set(options, "scale", "0.1") == DIC_OK);
  EXPECT(dic_stereo_create(options, rig, NULL, &images[0], &images[1], &stereo) == DIC_USAGE_ERROR);
  EXPECT(strstr(dic_last_error(), "one camera") != NULL);
  EXPECT(dic_stereo_epipolar(NULL, &distance, NULL) == DIC_USAGE_ERROR);
  dic_stereo_destroy(NULL);
  dic_options_destroy(options);
  for (int k = 0; k < 4; ++k) free((void*)images[k].pixels);
  remove(rig);
}

int main(void) {
  static uint8_t reference[kWidth * kHeight], current[kWidth * kHeight];
  fill(reference, 0, 0);
  fill(current, 1.25, -0.5);
  EXPECT(strlen(dic_version()) > 0);
  test_pair(reference, current);
  test_stream(reference, current);
  test_match(reference, current);
  test_match_poses(reference, current);
  test_errors(reference);
  test_live();
  test_stereo();
  return wrong;
}
