#include "run/noise_curve_files.hpp"

#include <cmath>
#include <dic/io.hpp>
#include <sstream>

#include "draw/chart.hpp"

namespace dic::run {

void write_noise_table(const std::filesystem::path& path, const std::vector<NoiseAtGrey>& curve) {
  std::ostringstream text;
  text << "grey,noise,pixels\n";
  for (const NoiseAtGrey& at : curve) text << at.grey << ',' << at.noise << ',' << at.pixels << '\n';
  write_text_file(path, text.str());
}

void write_noise_picture(const std::filesystem::path& path, const std::vector<NoiseAtGrey>& curve) {
  draw::Chart chart{.title = "Noise of the images",
                    .x_label = "grey",
                    .y_label = "standard deviation [grey]",
                    .x_ticks = {},
                    .y_mark = 0,
                    .series = {{"from differences of frames", {}}},
                    .log_x = false,
                    .log_y = false};
  for (const NoiseAtGrey& at : curve) {
    chart.series[0].points.emplace_back(at.grey, at.noise);
    if (chart.x_ticks.empty() || chart.series[0].points.size() % 4 == 0)
      chart.x_ticks.push_back(std::round(at.grey));
  }
  draw::write_chart(path, chart);
}

}  // namespace dic::run
