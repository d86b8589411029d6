/* field = dic_pair(reference, current, name, value, ...): a MEX function for MATLAB and Octave. Measures a pair of images of one class,
   with the options of dic track; docs/c.md says how to compile it. */
#include <dic/dic.h>
#include <mex.h>
#include <stdio.h>
#include <string.h>

static dic_options* options;
static dic_result* result;

static void leave(void) {
  dic_result_destroy(result);
  dic_options_destroy(options);
  result = NULL;
  options = NULL;
}

static void check(dic_status status) {
  if (status == DIC_OK) return;
  leave();
  mexErrMsgIdAndTxt("dic:failed", "%s", dic_last_error());
}

static dic_scalar type_of(const mxArray* image) {
  switch (mxGetClassID(image)) {
    case mxUINT8_CLASS: return DIC_U8;
    case mxUINT16_CLASS: return DIC_U16;
    case mxINT32_CLASS: return DIC_I32;
    case mxSINGLE_CLASS: return DIC_F32;
    case mxDOUBLE_CLASS: return DIC_F64;
    default: mexErrMsgIdAndTxt("dic:type", "Images are uint8, uint16, int32, single or double, grey.");
  }
  return DIC_U8;
}

/* Arrays of MATLAB run along columns, images of dic along rows. */
static void transpose(const char* in, char* out, size_t rows, size_t columns, size_t bytes) {
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) memcpy(out + (j * rows + i) * bytes, in + (i * columns + j) * bytes, bytes);
}

static void* pixels(const mxArray* image) {
  char* copy = mxMalloc(mxGetNumberOfElements(image) * mxGetElementSize(image));
  transpose(mxGetData(image), copy, mxGetN(image), mxGetM(image), mxGetElementSize(image));
  return copy;
}

static void set_option(const mxArray* name, const mxArray* value) {
  char text[64];
  snprintf(text, sizeof text, "%.17g", mxIsChar(value) ? 0 : mxGetScalar(value));
  check(dic_options_set(options, mxArrayToString(name), mxIsChar(value) ? mxArrayToString(value) : text));
}

static mxArray* array_of(const char* name, int32_t nx, int32_t ny) {
  double* values = mxMalloc(sizeof(double) * nx * ny);
  check(dic_result_copy(result, name, values, (int64_t)nx * ny));
  mxArray* array = mxCreateDoubleMatrix(ny, nx, mxREAL);
  transpose((char*)values, (char*)mxGetPr(array), ny, nx, sizeof(double));
  return array;
}

static mxArray* positions(int32_t first, int32_t step, int32_t count) {
  mxArray* array = mxCreateDoubleMatrix(1, count, mxREAL);
  for (int32_t k = 0; k < count; ++k) mxGetPr(array)[k] = first + k * step;
  return array;
}

void mexFunction(int outputs, mxArray* out[], int inputs, const mxArray* in[]) {
  static const char* names[] = {"u",      "v",   "zncc", "sigma_u", "sigma_v",  "status",    "exx",       "eyy",
                                "exy",    "e1",  "e2",   "von_mises", "sigma_exx", "sigma_eyy", "sigma_exy"};
  const int count = sizeof names / sizeof *names;
  (void)outputs;
  if (inputs < 2 || inputs % 2 || mxGetNumberOfDimensions(in[0]) != 2 || mxGetClassID(in[0]) != mxGetClassID(in[1]) ||
      mxGetM(in[0]) != mxGetM(in[1]) || mxGetN(in[0]) != mxGetN(in[1]))
    mexErrMsgIdAndTxt("dic:usage", "field = dic_pair(reference, current, name, value, ...): two grey images of one size and class.");
  const dic_scalar type = type_of(in[0]);
  check(dic_options_create(&options));
  for (int k = 2; k < inputs; k += 2) set_option(in[k], in[k + 1]);
  check(dic_track_pair(options, pixels(in[0]), pixels(in[1]), type, (int32_t)mxGetN(in[0]), (int32_t)mxGetM(in[0]), 0, &result));
  int32_t x0, y0, step, nx, ny;
  check(dic_result_grid(result, &x0, &y0, &step, &nx, &ny));
  out[0] = mxCreateStructMatrix(1, 1, count, names);
  for (int k = 0; k < count; ++k) mxSetField(out[0], 0, names[k], array_of(names[k], nx, ny));
  mxAddField(out[0], "x");
  mxAddField(out[0], "y");
  mxSetField(out[0], 0, "x", positions(x0, step, nx));
  mxSetField(out[0], 0, "y", positions(y0, step, ny));
  leave();
}
