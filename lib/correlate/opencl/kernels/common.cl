// Code that all kernels share. The build options name the types:
//   ELEMENT    type of the images' elements
//   REFERENCE  type of the references, packed one behind the other; elements outside the mask are 0
//   FACTOR     type to which both are converted before multiplication: products are exact, or exact modulo
//              the range of SUM
//   SUM        type of the sums
// and ITEMS_X, ITEMS_Y: the work items of a work group, in one row or in a rectangle.
#define ITEMS (ITEMS_X * ITEMS_Y)

// One pair of the job. The layout is that of dic::correlate::opencl::PairData.
struct Pair {
  long reference;      // index of the reference's first element in `references`
  long window;         // index of the window's (0, 0) in `images`; may lie outside
  int stride;          // elements from row to row of the image
  int x0, x1, y0, y1;  // part of the window inside the image: columns x0 .. x1 - 1, rows y0 .. y1 - 1
  int unused;
};

// Values that all pairs share. The layout is that of dic::correlate::opencl::JobData.
struct Job {
  int height, width;   // size of a reference
  int dx_min, dy_min;  // the first shift
  int nx, ny;          // number of shifts
};

#define PARAMETERS                                                                                   \
  global const REFERENCE *references, global const ELEMENT *images, global const struct Pair *pairs, \
      const struct Job job, global SUM *sums

// Number of neighbouring shifts that a work item keeps in registers.
#define SHIFTS 8
#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
typedef JOIN(FACTOR, 8) Factors;
typedef JOIN(SUM, 8) Sums;
#define TO_SUMS JOIN(convert_, JOIN(SUM, 8))

// The window moved by one element: `next` enters at the end, and the first element leaves.
Factors pushed(const Factors window, FACTOR next) {
  return (Factors)(window.s1, window.s23, window.s4567, next);
}

// Stores the sums of the shifts x .. x + 7 of row y, except for shifts beyond those of the job.
void store(const Sums sum, size_t pair, int x, int y, const struct Job job, global SUM* sums) {
  if (y >= job.ny) return;
  SUM found[SHIFTS];
  vstore8(sum, 0, found);
  global SUM* to = sums + (pair * job.ny + y) * job.nx + x;
  for (int k = 0; k < min(SHIFTS, job.nx - x); ++k) to[k] = found[k];
}
