#pragma once

#include <cmath>
#include <dic/shared/host_device.hpp>

/// Matrices of a few rows and columns, for formulas that CPU and GPU share.
namespace dic::stereo {

template <int kRows, int kColumns>
struct SmallMatrix {
  double at[kRows][kColumns];  ///< not initialized by default

  DIC_HOST_DEVICE double& operator()(int row, int column) { return at[row][column]; }
  DIC_HOST_DEVICE double operator()(int row, int column) const { return at[row][column]; }
  /// The k-th element of a column vector.
  DIC_HOST_DEVICE double& operator[](int k) { return at[k][0]; }
  DIC_HOST_DEVICE double operator[](int k) const { return at[k][0]; }

  DIC_HOST_DEVICE static SmallMatrix zero() {
    SmallMatrix m;
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) m.at[i][j] = 0;
    return m;
  }
  DIC_HOST_DEVICE static SmallMatrix identity() {
    SmallMatrix m = zero();
    for (int i = 0; i < kRows; ++i) m.at[i][i] = 1;
    return m;
  }
  /// Some columns, from `first` on.
  template <int kCount>
  DIC_HOST_DEVICE SmallMatrix<kRows, kCount> columns(int first) const {
    SmallMatrix<kRows, kCount> part;
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kCount; ++j) part.at[i][j] = at[i][first + j];
    return part;
  }
  DIC_HOST_DEVICE SmallMatrix<kColumns, kRows> transposed() const {
    SmallMatrix<kColumns, kRows> other;
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) other.at[j][i] = at[i][j];
    return other;
  }
  DIC_HOST_DEVICE bool is_finite() const {
    double sum = 0;  // 0 unless an element is infinite or NaN
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) sum += 0 * at[i][j];
    return sum == 0;
  }
};

using Vector2 = SmallMatrix<2, 1>;
using Vector3 = SmallMatrix<3, 1>;
using Matrix2 = SmallMatrix<2, 2>;
using Matrix3 = SmallMatrix<3, 3>;

DIC_HOST_DEVICE inline Vector2 vector2(double x, double y) { return {{{x}, {y}}}; }
DIC_HOST_DEVICE inline Vector3 vector3(double x, double y, double z) { return {{{x}, {y}, {z}}}; }
DIC_HOST_DEVICE inline Matrix2 matrix2(double xx, double xy, double yx, double yy) {
  return {{{xx, xy}, {yx, yy}}};
}

template <int kRows, int kInner, int kColumns>
DIC_HOST_DEVICE SmallMatrix<kRows, kColumns> operator*(const SmallMatrix<kRows, kInner>& a,
                                                       const SmallMatrix<kInner, kColumns>& b) {
  SmallMatrix<kRows, kColumns> c;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int k = 0; k < kInner; ++k) sum += a.at[i][k] * b.at[k][j];
      c.at[i][j] = sum;
    }
  return c;
}
template <int kRows, int kColumns>
DIC_HOST_DEVICE SmallMatrix<kRows, kColumns> operator*(double factor, SmallMatrix<kRows, kColumns> m) {
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) m.at[i][j] *= factor;
  return m;
}
template <int kRows, int kColumns>
DIC_HOST_DEVICE SmallMatrix<kRows, kColumns> operator+(SmallMatrix<kRows, kColumns> a,
                                                       const SmallMatrix<kRows, kColumns>& b) {
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) a.at[i][j] += b.at[i][j];
  return a;
}
template <int kRows, int kColumns>
DIC_HOST_DEVICE SmallMatrix<kRows, kColumns> operator-(SmallMatrix<kRows, kColumns> a,
                                                       const SmallMatrix<kRows, kColumns>& b) {
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) a.at[i][j] -= b.at[i][j];
  return a;
}
template <int kRows>
DIC_HOST_DEVICE double dot(const SmallMatrix<kRows, 1>& a, const SmallMatrix<kRows, 1>& b) {
  double sum = 0;
  for (int i = 0; i < kRows; ++i) sum += a[i] * b[i];
  return sum;
}
template <int kRows>
DIC_HOST_DEVICE double norm(const SmallMatrix<kRows, 1>& a) {
  return std::sqrt(dot(a, a));
}
DIC_HOST_DEVICE inline Vector3 cross(const Vector3& a, const Vector3& b) {
  return vector3(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]);
}
DIC_HOST_DEVICE inline double determinant(const Matrix2& m) { return m(0, 0) * m(1, 1) - m(0, 1) * m(1, 0); }
DIC_HOST_DEVICE inline Matrix2 inverse(const Matrix2& m) {
  const double det = determinant(m);
  return matrix2(m(1, 1) / det, -m(0, 1) / det, -m(1, 0) / det, m(0, 0) / det);
}

/// The Cholesky factorization of a symmetric matrix, of which the lower half is read. What it solves is NaN
/// if the matrix is not positive definite.
template <int kRows>
class Cholesky {
 public:
  DIC_HOST_DEVICE explicit Cholesky(const SmallMatrix<kRows, kRows>& m) : l_(m) {
    for (int j = 0; j < kRows; ++j) {
      for (int i = j; i < kRows; ++i)
        for (int k = 0; k < j; ++k) l_(i, j) -= l_(i, k) * l_(j, k);
      l_(j, j) = std::sqrt(l_(j, j));
      for (int i = j + 1; i < kRows; ++i) l_(i, j) /= l_(j, j);
    }
  }
  template <int kColumns>
  DIC_HOST_DEVICE SmallMatrix<kRows, kColumns> solve(SmallMatrix<kRows, kColumns> right) const {
    for (int c = 0; c < kColumns; ++c) {
      for (int i = 0; i < kRows; ++i) {
        for (int k = 0; k < i; ++k) right(i, c) -= l_(i, k) * right(k, c);
        right(i, c) /= l_(i, i);
      }
      for (int i = kRows - 1; i >= 0; --i) {
        for (int k = i + 1; k < kRows; ++k) right(i, c) -= l_(k, i) * right(k, c);
        right(i, c) /= l_(i, i);
      }
    }
    return right;
  }
  /// The smallest pivot: the square of the smallest element of the factor's diagonal. NaN as above.
  DIC_HOST_DEVICE double least_pivot() const {
    double least = l_(0, 0);
    for (int i = 1; i < kRows; ++i)
      if (!(l_(i, i) >= least)) least = l_(i, i);
    return least * least;
  }

 private:
  SmallMatrix<kRows, kRows> l_;
};

}  // namespace dic::stereo
