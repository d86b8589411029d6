#include "core/dense_solvers.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>

namespace dic::core {

using Eigen::MatrixXd;

SymmetricEigen symmetric_eigen(const MatrixXd& matrix) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(matrix);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

MatrixXd solve_symmetric(const MatrixXd& matrix, const MatrixXd& right) { return matrix.ldlt().solve(right); }

MatrixXd inverse_of(const MatrixXd& matrix) { return matrix.inverse(); }

MatrixXd least_squares(const MatrixXd& matrix, const MatrixXd& right) {
  return matrix.colPivHouseholderQr().solve(right);
}

}  // namespace dic::core
