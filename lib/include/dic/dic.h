#ifndef DIC_DIC_H
#define DIC_DIC_H

#include <stdint.h>

/* libdic for C, and for programs that call C: MATLAB, LabVIEW, Julia, C#. docs/c.md shows how.
 *
 * Objects are opaque: a function makes them, another destroys them (NULL is allowed there). Every other
 * function returns a status; after any but DIC_OK, dic_last_error() is one sentence that says what is wrong
 * and what to do. No exception leaves the library. Calls with different objects may run at the same time;
 * with one object they may not, except those of a stream.
 *
 * An image is height rows of width pixels, x right, y down; row_bytes is the distance between the starts of
 * two rows (0 = width * size of a pixel). Pixels are copied unless a function says otherwise. With the option
 * device "cuda" or "cuda:N" the pixels of dic_track_pair and of a stream may be in the memory of a GPU; work
 * that was queued in the GPU's default stream is waited for. */

/* Marks the functions that libdic exports. Users of a static libdic define DIC_STATIC. Except on Windows, users
 * see plain declarations, which other languages can parse. */
#if defined(_WIN32) && defined(DIC_BUILDING_LIBDIC) && !defined(DIC_STATIC)
#define DIC_C_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(DIC_STATIC)
#define DIC_C_API __declspec(dllimport)
#elif defined(DIC_BUILDING_LIBDIC) && !defined(DIC_STATIC)
#define DIC_C_API __attribute__((visibility("default")))
#else
#define DIC_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dic_status {
  DIC_OK = 0,
  DIC_USAGE_ERROR = 1,   /* a value, or a combination, that makes no sense */
  DIC_FILE_ERROR = 2,    /* a file is missing, unreadable or damaged */
  DIC_DEVICE_ERROR = 3,  /* a GPU is missing or failed */
  DIC_CANCELLED = 4,     /* the call was cancelled */
  DIC_OUT_OF_MEMORY = 5, /* there is not enough memory */
  DIC_OTHER_ERROR = 6
} dic_status;

/* Callers in C may pass any number; the fixed type keeps C++ from assuming that only listed values occur. */
#ifdef __cplusplus
#define DIC_ANY_INT : int
#else
#define DIC_ANY_INT
#endif
typedef enum dic_scalar DIC_ANY_INT { DIC_U8 = 0, DIC_U16 = 1, DIC_I32 = 2, DIC_F32 = 3, DIC_F64 = 4 } dic_scalar;
#undef DIC_ANY_INT

/* A grey image; row_bytes 0 = rows without padding. */
typedef struct dic_image {
  const void* pixels;
  dic_scalar type;
  int32_t width, height;
  int64_t row_bytes;
} dic_image;

typedef struct dic_options dic_options;
typedef struct dic_stream dic_stream;
typedef struct dic_stereo dic_stereo;
typedef struct dic_result dic_result;
typedef struct dic_live dic_live;

/* Version of the library, for example "0.1.0". */
DIC_C_API const char* dic_version(void);
/* Message of this thread's last call that failed; "" if none has. Valid until the next call that fails. */
DIC_C_API const char* dic_last_error(void);

/* Options by the names and values of the command line: dic_options_set(options, "subset", "21"). Options
 * that are not set have their defaults. Options about files ("output", "csv", ...) have no effect here. */
DIC_C_API dic_status dic_options_create(dic_options** options);
DIC_C_API void dic_options_destroy(dic_options* options);
DIC_C_API dic_status dic_options_set(dic_options* options, const char* name, const char* value);
/* Sets the region of interest: u8, the reference's size, inside where not 0. */
DIC_C_API dic_status dic_options_set_mask(dic_options* options, const uint8_t* mask, int32_t width,
                                          int32_t height, int64_t row_bytes);

/* Measures one pair of images. options: NULL = defaults. */
DIC_C_API dic_status dic_track_pair(const dic_options* options, const void* reference, const void* current,
                                    dic_scalar type, int32_t width, int32_t height, int64_t row_bytes,
                                    dic_result** result);

/* Measures frames while they arrive. Its functions may be called from any thread. At most `capacity` (>= 1)
 * frames are inside, that is, pushed without their result being taken yet. */
DIC_C_API dic_status dic_stream_create(const dic_options* options, const void* reference, dic_scalar type,
                                       int32_t width, int32_t height, int64_t row_bytes, int32_t capacity,
                                       dic_stream** stream);
DIC_C_API void dic_stream_destroy(dic_stream* stream);
/* Copies the pixels; waits while `capacity` frames are inside. index (or NULL): receives the frame's number,
 * 0, 1, ... A frame that cannot be measured (size, type) yields a result whose error says so. */
DIC_C_API dic_status dic_stream_push(dic_stream* stream, const void* frame, dic_scalar type, int32_t width,
                                     int32_t height, int64_t row_bytes, int64_t* index);
/* The next result, in the order of the frames: poll returns at once, wait waits for it. *result is NULL if
 * poll finds none, or if no frame is inside. */
DIC_C_API dic_status dic_stream_poll(dic_stream* stream, dic_result** result);
DIC_C_API dic_status dic_stream_wait(dic_stream* stream, dic_result** result);
/* Drops the frames that are not measured yet. */
DIC_C_API dic_status dic_stream_cancel(dic_stream* stream);
/* Starts the next experiment with another reference and the same options; drops results not taken yet. */
DIC_C_API dic_status dic_stream_reset(dic_stream* stream, const void* reference, dic_scalar type,
                                      int32_t width, int32_t height, int64_t row_bytes);

/* Measures shape, displacement and strain in 3-D with two cameras: pairs of images against a pair of references.
 * options: NULL = defaults; those of one camera ("scale", "camera", ...) are refused. calibration: a file of
 * `dic calibrate` or of another program. settings: options that `dic stereo` alone has, a line each, as
 * "axes=plane\ncorrect-rig=true\nremove-rigid-motion=true"; NULL = defaults. Measures the references. */
DIC_C_API dic_status dic_stereo_create(const dic_options* options, const char* calibration,
                                       const char* settings, const dic_image* left, const dic_image* right,
                                       dic_stereo** stereo);
DIC_C_API void dic_stereo_destroy(dic_stereo* stereo);
/* The shape in the references: X, Y, Z, and no displacement. */
DIC_C_API dic_status dic_stereo_reference(const dic_stereo* stereo, dic_result** result);
/* Measures the next pair. Its index is 1, 2, ... */
DIC_C_API dic_status dic_stereo_track(dic_stereo* stereo, const dic_image* left, const dic_image* right,
                                      dic_result** result);
/* Median and robust standard deviation of the distances of the last pair from its epipolar lines, px. Above
 * 0.1 px the cameras have moved since their calibration. Output pointers may be NULL. */
DIC_C_API dic_status dic_stereo_epipolar(const dic_stereo* stereo, double* median, double* sd);

/* Measures the frames of a camera while they arrive, without files unless they are recorded. settings: options of
 * `dic live` by name, a line each: "camera=fake\nfps=20\nuntil=100". options: NULL = defaults. */
DIC_C_API dic_status dic_live_create(const dic_options* options, const char* settings, dic_live** live);
/* Stops. */
DIC_C_API void dic_live_destroy(dic_live* live);
/* Waits for the next line of JSON, which docs/live.md describes; NULL after the last one. It is valid until the
 * next call with this object. result (or NULL): receives the field of a frame, NULL for other lines. */
DIC_C_API dic_status dic_live_next(dic_live* live, const char** line, dic_result** result);
/* Ends the measurement: a few more lines may follow. May be called while another thread waits for a line. */
DIC_C_API dic_status dic_live_stop(dic_live* live);

DIC_C_API void dic_result_destroy(dic_result* result);
/* The grid: nodes lie at (x0 + i * step, y0 + j * step) px, i < nx, j < ny. Output pointers may be NULL. */
DIC_C_API dic_status dic_result_grid(const dic_result* result, int32_t* x0, int32_t* y0, int32_t* step,
                                     int32_t* nx, int32_t* ny);
/* Number of the frame in its stream, from 0; 0 for a pair; with two cameras 0 for the references. */
DIC_C_API dic_status dic_result_index(const dic_result* result, int64_t* index);
/* Why the frame could not be measured; "" if it was. Valid as long as the result. */
DIC_C_API const char* dic_result_error(const dic_result* result);
/* Copies an array of all nodes, ny rows of nx values, as double; NaN where nothing was measured. count: number
 * of values that fit into `values`, at least nx * ny. name:
 *   u, v, sigma_u, sigma_v (px); zncc; iterations;
 *   status: 0 ok, 1 flat, 2 out_of_image, 3 low_correlation, 4 not_converged, 5 diverged, 6 masked, 7 outlier,
 *     8 ambiguous, 9 epipolar (with two cameras: contradicts their calibration);
 *   exx, eyy, exy, e1, e2, von_mises, sigma_exx, sigma_eyy, sigma_exy;
 *   X, Y, Z, U, V, W, sigma_X, sigma_Y, sigma_Z, sigma_U, sigma_V, sigma_W (mm), epipolar, reprojection (px),
 *     incidence (degrees): only with two cameras, whose strain is that of the surface, and whose u and v are
 *     those of the left image;
 *   order: only if the option order is auto;
 *   resolution, subset_sigma_u, subset_sigma_v (px): only if the option global is set.
 * The names and their meaning stand in dic/field_schema.hpp. */
DIC_C_API dic_status dic_result_copy(const dic_result* result, const char* name, double* values,
                                     int64_t count);

/* Finds a template in an image, the best score first. matches: rows of 5 numbers, at most max_matches of
 * them: x, y (px, of the centre of the template's top left pixel), center_x, center_y (px), score (zncc, [-1,
 * 1]). threshold: lowest accepted score. device: NULL = "auto". found: the number of rows that were written.
 * Both images have rows without padding. */
DIC_C_API dic_status dic_match(const void* pattern, dic_scalar pattern_type, int32_t pattern_width,
                               int32_t pattern_height, const void* image, dic_scalar image_type,
                               int32_t image_width, int32_t image_height, double threshold,
                               const char* device, int32_t max_matches, double* matches, int32_t* found);

/* A search of poses within ranges, ends included. Where least and most are equal, the value is given and not
 * measured. -180 and 180 are any angle. */
typedef struct dic_pose_search {
  double least_rotation, most_rotation; /* degrees, positive from x towards y */
  double least_scale, most_scale;       /* 1 = the template's own size */
  double threshold;                     /* lowest accepted score */
  int32_t max_matches;                  /* number of rows that fit into `matches`, at least 1 */
  int32_t timeout_ms;                   /* time after which the matches so far are returned; 0 = none */
} dic_pose_search;

#define DIC_POSE_COLUMNS 12
/* Finds a template at any pose, the best score first, on the CPU. mask (or NULL): of the pattern's size;
 * pixels where it is zero do not count. matches: rows of DIC_POSE_COLUMNS numbers: x, y, center_x, center_y,
 * score as of dic_match, rotation (degrees), scale, the standard deviations of center_x, center_y, rotation
 * and scale, and the share of the template's pixels that are visible. found: the number of rows that were
 * written. */
DIC_C_API dic_status dic_match_poses(const dic_image* pattern, const dic_image* mask, const dic_image* image,
                                     const dic_pose_search* search, double* matches, int32_t* found);

#ifdef __cplusplus
}
#endif

#endif
