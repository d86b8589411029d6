#include "track/results.hpp"

#include <filesystem>
#include <vector>

#include "track/run_json.hpp"

namespace dic {

namespace fs = std::filesystem;

void Results::begin(ResultInfo info) {
  info_ = std::move(info);
  folder_.begin();
  writer_.emplace(folder_.claim("result.vtkhdf"), info_);
}

void Results::add(const Field& field, ImageView current, int number, const std::string& name) {
  const std::string stem = folder_.unique_stem(fs::path(name).stem().string());
  writer_->append(field, number, name);
  if (job_.csv) write_csv(folder_.claim(fs::path("csv") / (stem + ".csv")), info_, field, job_.csv_style);
  if (job_.pictures) add_pictures(field, current, stem);
}

void Results::add_pictures(const Field& field, ImageView current, const std::string& stem) {
  const auto draw = [&](const std::string& title, const std::string& unit, const std::vector<float>& values) {
    const fs::path path = folder_.claim(fs::path("pictures") / (stem + "_" + title + ".png"));
    write_field_picture(path, current, info_.grid, field, values, {.title = title, .unit = unit});
  };
  const auto in_unit = [&](const std::vector<double>& lengths) {
    std::vector<float> scaled(lengths.size());
    for (std::size_t i = 0; i < lengths.size(); ++i)
      scaled[i] = static_cast<float>(lengths[i] * info_.length_factor());
    return scaled;
  };
  draw("u", info_.length_unit(), in_unit(field.u));
  draw("v", info_.length_unit(), in_unit(field.v));
  draw("exx", "", field.strain.exx);
  draw("eyy", "", field.strain.eyy);
  draw("exy", "", field.strain.exy);
}

void Results::finish(const TrackSummary& summary) {
  writer_->finish();
  write_text_file(folder_.claim("run.json"), run_json(job_, summary));
  folder_.commit();
}

}  // namespace dic
