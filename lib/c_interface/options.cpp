#include <dic/info.hpp>
#include <dic/track_options.hpp>

#include "c_interface/objects.hpp"

using namespace dic;
using namespace dic::c_interface;

const char* dic_version(void) {
  static const std::string text = version();
  return text.c_str();
}

const char* dic_last_error(void) { return last_error().c_str(); }

dic_status dic_options_create(dic_options** options) {
  return guarded([&] {
    dic_options*& out = checked(options, "options");  // checked first, because nothing can leak yet
    out = new dic_options;
  });
}

void dic_options_destroy(dic_options* options) { delete options; }

dic_status dic_options_set(dic_options* options, const char* name, const char* value) {
  return guarded([&] {
    TrackJob& job = checked(options, "options").job;
    track_option(&checked(name, "name")).set(job, &checked(value, "value"));
  });
}

dic_status dic_options_set_mask(dic_options* options, const std::uint8_t* mask, std::int32_t width,
                                std::int32_t height, std::int64_t row_bytes) {
  return guarded([&] {
    Roi& roi = checked(options, "options").job.roi;
    roi.mask = copy_of(view_of(mask, DIC_U8, width, height, row_bytes));
  });
}
