#include "global/probes.hpp"

#include <cstdint>
#include <dic/shared/strain_sigma.hpp>
#include <vector>

namespace dic::global {
namespace {

/// The finalizer of SplitMix64 (Steele, Lea & Flood 2014): mixes the bits of a counter.
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/// Fills a row with white noise of -1 and 1; its sums over a subset are practically normal.
void fill_noise_row(std::uint64_t key, std::vector<double>& row) {
  std::uint64_t bits = 0;
  for (std::size_t x = 0; x < row.size(); ++x) {
    if (x % 64 == 0) bits = mixed(key + mixed(x / 64));
    row[x] = bits >> x % 64 & 1 ? 1 : -1;
  }
}

using Kernel = strain::ErrorKernel;

/// Sums of a row of noise over the columns of every subset: plain, and times the kernel's square.
struct RowSums {
  std::vector<double> plain, curved;
};

RowSums row_sums(const std::vector<double>& noise, const Kernel& kernel, int nx, int step) {
  RowSums sums{std::vector<double>(nx), std::vector<double>(nx)};
  for (int i = 0; i < nx; ++i)
    for (int k = -kernel.radius; k <= kernel.radius; ++k) {
      const double value = kernel.weight(k) * noise[std::size_t(i) * step + k + kernel.radius];
      sums.plain[i] += value;
      sums.curved[i] += kernel.square(k) * value;
    }
  return sums;
}

Eigen::VectorXd errors(const Mesh& mesh, const Kernel& kernel, std::uint64_t key) {
  const int side = 2 * kernel.radius + 1;
  std::vector<RowSums> rows;
  std::vector<double> noise(std::size_t(mesh.nx - 1) * mesh.step + side);
  for (int y = 0; y < (mesh.ny - 1) * mesh.step + side; ++y) {
    fill_noise_row(mixed(key + y), noise);
    rows.push_back(row_sums(noise, kernel, mesh.nx, mesh.step));
  }
  Eigen::VectorXd out(mesh.size());
  for (Eigen::Index row = 0; row < mesh.size(); ++row) {
    const auto i = static_cast<std::size_t>(mesh.nodes[row] % mesh.nx);
    const auto top = static_cast<std::size_t>(mesh.nodes[row] / mesh.nx) * mesh.step;
    double sum = 0;
    for (int k = 0; k < side; ++k) {
      const RowSums& sums = rows[top + k];
      const int j = k - kernel.radius;
      sum += kernel.weight(j) * (kernel.flat * sums.plain[i] +
                                 kernel.curved * (sums.curved[i] + kernel.square(j) * sums.plain[i]));
    }
    out[row] = sum;
  }
  return out;
}

}  // namespace

Eigen::MatrixXd subset_errors(const Mesh& mesh, const MeasuredSubsets& subsets, int count,
                              core::ThreadPool& pool) {
  const Kernel kernel(subsets);
  Eigen::MatrixXd out(mesh.size(), count);
  pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t k = begin; k < end; ++k)
      out.col(k) = errors(mesh, kernel, mixed(static_cast<std::uint64_t>(k)));
  });
  return out;
}

}  // namespace dic::global
