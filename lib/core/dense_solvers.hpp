#pragma once

#include <Eigen/Core>

namespace dic::core {

// Solvers of Eigen for small matrices, compiled once: where a source uses one itself, the compiler takes
// seconds to make it. They allocate memory, so they are not for loops over points.

struct SymmetricEigen {
  Eigen::VectorXd values;  ///< ascending
  Eigen::MatrixXd vectors;
};

/// Eigenvalues and eigenvectors of a symmetric matrix.
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& matrix);

/// The solution of symmetric equations (LDLT); a column per right-hand side. Directions in which the matrix
/// is zero are left out.
Eigen::MatrixXd solve_symmetric(const Eigen::MatrixXd& matrix, const Eigen::MatrixXd& right);

/// The inverse of a square matrix. It is not finite if there is none.
Eigen::MatrixXd inverse_of(const Eigen::MatrixXd& matrix);

/// The solution of overdetermined equations with the least squares; a column per right-hand side.
Eigen::MatrixXd least_squares(const Eigen::MatrixXd& matrix, const Eigen::MatrixXd& right);

}  // namespace dic::core
