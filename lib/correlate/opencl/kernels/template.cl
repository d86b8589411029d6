// This kernel suits a template in a large image. A work group computes a tile of shifts. It keeps the part of
// the window that these shifts and a part of the reference need in local memory, so that an image element is
// read once for all of them. Each work item keeps eight neighbouring shifts in registers.

#define PART_HEIGHT 16
#define PART_WIDTH 32
#define TILE_WIDTH (ITEMS_X * SHIFTS)
#define STAGED_HEIGHT (ITEMS_Y + PART_HEIGHT - 1)
#define STAGED_WIDTH (TILE_WIDTH + PART_WIDTH - 1)

// Copies rows y .. y + height - 1 and columns x .. x + width - 1 of the window; elements outside it become 0.
void stage(local ELEMENT* staged, global const ELEMENT* images, const struct Pair pair, int x, int y,
           int width, int height) {
  for (int i = get_local_id(1); i < height; i += ITEMS_Y) {
    const bool row_is_there = y + i >= pair.y0 && y + i < pair.y1;
    const long row = pair.window + (long)(y + i) * pair.stride + x;
    for (int j = get_local_id(0); j < width; j += ITEMS_X)
      staged[i * STAGED_WIDTH + j] =
          row_is_there && x + j >= pair.x0 && x + j < pair.x1 ? images[row + j] : (ELEMENT)0;
  }
}

// Sums of the products of `columns` elements of the reference with a row of the staged window.
Sums products(global const REFERENCE* reference, int columns, local const ELEMENT* row) {
  Sums sum = 0;
  Factors window = 0;
  for (int k = 0; k < SHIFTS - 1; ++k) window = pushed(window, (FACTOR)row[k]);
  for (int j = 0; j < columns; ++j) {
    window = pushed(window, (FACTOR)row[j + SHIFTS - 1]);
    sum += TO_SUMS(window * (FACTOR)reference[j]);
  }
  return sum;
}

kernel __attribute__((reqd_work_group_size(ITEMS_X, ITEMS_Y, 1))) void correlate(PARAMETERS) {
  local ELEMENT staged[STAGED_HEIGHT * STAGED_WIDTH];
  const struct Pair pair = pairs[get_global_id(2)];
  const int tile_x = (int)get_group_id(0) * TILE_WIDTH, tile_y = (int)get_group_id(1) * ITEMS_Y;
  const int x = (int)get_global_id(0) * SHIFTS, y = (int)get_global_id(1);
  Sums sum = 0;
  for (int top = 0; top < job.height; top += PART_HEIGHT)
    for (int left = 0; left < job.width; left += PART_WIDTH) {
      const int rows = min(PART_HEIGHT, job.height - top), columns = min(PART_WIDTH, job.width - left);
      barrier(CLK_LOCAL_MEM_FENCE);  // all work items are done with the previous part
      stage(staged, images, pair, job.dx_min + tile_x + left, job.dy_min + tile_y + top,
            TILE_WIDTH + columns - 1, ITEMS_Y + rows - 1);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = 0; i < rows; ++i)
        sum += products(references + pair.reference + (long)(top + i) * job.width + left, columns,
                        staged + (get_local_id(1) + i) * STAGED_WIDTH + get_local_id(0) * SHIFTS);
    }
  store(sum, get_global_id(2), x, y, job, sums);
}
