#include "global/system.hpp"

#include "global/transfer.hpp"

namespace dic::global {

System::System(const Mesh& mesh, const SparseMatrix& mean, const Eigen::VectorXd& weights)
    : mesh_(mesh),
      mean_(mean),
      weighted_(SparseMatrix(mean_.transpose()) * weights.asDiagonal()),
      data_(weighted_ * mean_) {
  solver_.analyzePattern(data_ + mesh_.bending);
}

void System::set_penalty(double penalty) { solver_.factorize(data_ + penalty * mesh_.bending); }

Eigen::VectorXd System::alternate(const Eigen::VectorXd& measured) const {
  Eigen::VectorXd field, multiplier = Eigen::VectorXd::Zero(measured.size());
  for (int alternation = 0; alternation < kAlternations; ++alternation) {
    field = solver_.solve(weighted_ * (measured + multiplier));
    multiplier += measured - mean_ * field;
  }
  return field;
}

Eigen::MatrixXd System::alternate(const Eigen::MatrixXd& measured, core::ThreadPool& pool) const {
  Eigen::MatrixXd fields(measured.rows(), measured.cols());
  pool.parallel_for(measured.cols(), 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t k = begin; k < end; ++k) fields.col(k) = alternate(Eigen::VectorXd(measured.col(k)));
  });
  return fields;
}

}  // namespace dic::global
