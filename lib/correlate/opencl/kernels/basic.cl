// One work item per shift sums the products of the overlapping elements one after the other.
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void correlate(PARAMETERS) {
  if (get_global_id(0) >= (size_t)job.nx * job.ny) return;
  const struct Pair pair = pairs[get_global_id(1)];
  const int x = (int)(get_global_id(0) % job.nx), y = (int)(get_global_id(0) / job.nx);
  const int dx = job.dx_min + x, dy = job.dy_min + y;
  const int bottom = min(job.height, pair.y1 - dy), right = min(job.width, pair.x1 - dx);
  SUM sum = 0;
  for (int i = max(0, pair.y0 - dy); i < bottom; ++i) {
    const long reference = pair.reference + (long)i * job.width;
    const long window = pair.window + (long)(i + dy) * pair.stride + dx;
    for (int j = max(0, pair.x0 - dx); j < right; ++j)
      sum += (SUM)((FACTOR)references[reference + j] * (FACTOR)images[window + j]);
  }
  sums[(get_global_id(1) * job.ny + y) * job.nx + x] = sum;
}
