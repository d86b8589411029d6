// One work item keeps eight neighbouring shifts in registers, so that one read of a window element serves all
// of them. The work items of a work group share a part of the reference in local memory.

#define PART_HEIGHT 16
#define PART_WIDTH 64

FACTOR element_or_zero(global const ELEMENT* images, long row, int x, const struct Pair pair) {
  return x >= pair.x0 && x < pair.x1 ? (FACTOR)images[row + x] : (FACTOR)0;
}

// Sums of the products of `columns` elements of the reference with a row of the window from column x on.
Sums products(local const REFERENCE* part, int columns, global const ELEMENT* images, long row, int x,
              const struct Pair pair) {
  Sums sum = 0;
  Factors window = 0;
  for (int k = 0; k < SHIFTS - 1; ++k) window = pushed(window, element_or_zero(images, row, x + k, pair));
  for (int j = 0; j < columns; ++j) {
    window = pushed(window, element_or_zero(images, row, x + j + SHIFTS - 1, pair));
    sum += TO_SUMS(window * (FACTOR)part[j]);
  }
  return sum;
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void correlate(PARAMETERS) {
  local REFERENCE part[PART_HEIGHT * PART_WIDTH];
  const struct Pair pair = pairs[get_global_id(1)];
  const int items_in_row = (job.nx + SHIFTS - 1) / SHIFTS;
  const int x = (int)(get_global_id(0) % items_in_row) * SHIFTS, y = (int)(get_global_id(0) / items_in_row);
  const int dx = job.dx_min + x, dy = job.dy_min + y;
  Sums sum = 0;
  for (int top = 0; top < job.height; top += PART_HEIGHT)
    for (int left = 0; left < job.width; left += PART_WIDTH) {
      const int rows = min(PART_HEIGHT, job.height - top), columns = min(PART_WIDTH, job.width - left);
      barrier(CLK_LOCAL_MEM_FENCE);  // all work items are done with the previous part
      for (int k = get_local_id(0); k < rows * columns; k += ITEMS)
        part[k] = references[pair.reference + (long)(top + k / columns) * job.width + left + k % columns];
      barrier(CLK_LOCAL_MEM_FENCE);
      const int bottom = min(rows, pair.y1 - dy - top);
      for (int i = max(0, pair.y0 - dy - top); i < bottom; ++i)
        sum += products(part + i * columns, columns, images, pair.window + (long)(dy + top + i) * pair.stride,
                        dx + left, pair);
    }
  store(sum, get_global_id(1), x, y, job, sums);
}
