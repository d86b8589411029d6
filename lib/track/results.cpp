#include "track/results.hpp"

#include <array>
#include <dic/draw.hpp>
#include <filesystem>
#include <span>
#include <vector>

#include "track/noise_curve.hpp"
#include "track/run_json.hpp"

namespace dic {

namespace fs = std::filesystem;

void Results::begin(const Grid& grid, ResultInfo info) {
  info_ = std::move(info);
  folder_.begin();
  writer_.emplace(folder_.claim("result.vtkhdf"), grid, info_);
}

void Results::add(const Field& field, ImageView current, int number, const std::string& name) {
  const std::string stem = folder_.unique_stem(fs::path(name).stem().string());
  writer_->append(field, number, name);
  if (job_.csv) write_csv(folder_.claim(fs::path("csv") / (stem + ".csv")), info_, field, job_.csv_style);
  if (job_.pictures) add_pictures(field, current, stem);
}

void Results::add_pictures(const Field& field, ImageView current, const std::string& stem) {
  const auto in_unit = [&](const NodeValues<double>& lengths) {
    std::vector<float> scaled(lengths.size());
    for (std::size_t i = 0; i < lengths.size(); ++i)
      scaled[i] = static_cast<float>(lengths[i] * info_.length_factor());
    return scaled;
  };
  const std::vector<float> u = in_unit(field.u), v = in_unit(field.v);
  struct Picture {
    std::string title, unit;
    std::span<const float> values;
    fs::path path = {};
  };
  std::array pictures{Picture{"u", info_.length_unit(), u}, Picture{"v", info_.length_unit(), v},
                      Picture{"exx", "", field.strain.exx}, Picture{"eyy", "", field.strain.eyy},
                      Picture{"exy", "", field.strain.exy}};
  for (Picture& p : pictures) p.path = folder_.claim(fs::path("pictures") / (stem + "_" + p.title + ".png"));
  threads_.parallel_for(std::ssize(pictures), 1, [&](std::int64_t i, std::int64_t, int) {
    const Picture& p = pictures[i];
    write_field_picture(p.path, current, field, p.values, {.symbol = p.title, .unit = p.unit});
  });
}

void Results::finish(const TrackSummary& summary) {
  writer_->finish();
  if (!summary.noise_curve.empty()) {
    track::write_noise_table(folder_.claim("noise_curve.csv"), summary.noise_curve);
    track::write_noise_picture(folder_.claim("noise_curve.png"), summary.noise_curve);
  }
  write_text_file(folder_.claim("run.json"), run_json(job_, summary));
  folder_.commit();
}

}  // namespace dic
