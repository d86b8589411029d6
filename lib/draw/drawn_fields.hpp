#pragma once

#include <dic/camera.hpp>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/result.hpp>
#include <string>
#include <vector>

#include "draw/moved_grid.hpp"

namespace dic::draw {

/// Fields of frames to draw. Several threads may call it at the same time.
class DIC_INTERNAL_API DrawnFields {
 public:
  virtual ~DrawnFields() = default;
  virtual const ResultInfo& info() const = 0;
  /// The positions of the nodes of a frame in its image; valid as long as the fields.
  virtual MovedGrid moved_grid(int frame) const = 0;
  /// An array with one component, or "magnitude" of the displacement, with two cameras in
  /// space: [ny x nx], in the unit of the result.
  /// Throws UsageError for an unknown name.
  virtual std::vector<float> values(const std::string& name, int frame) const = 0;
};

/// The fields of a result, which must outlive this object.
class DIC_INTERNAL_API ResultFields final : public DrawnFields {
 public:
  /// camera: camera of the result, or null. strain_factor: strains are multiplied by it, for example by 100
  /// for percent.
  ResultFields(const Result& result, const Camera* camera, double strain_factor = 1)
      : result_(result), camera_(camera), strain_factor_(strain_factor) {}

  const ResultInfo& info() const override { return result_.info(); }
  MovedGrid moved_grid(int frame) const override;
  std::vector<float> values(const std::string& name, int frame) const override;

 private:
  const Result& result_;
  const Camera* camera_;
  double strain_factor_;
};

/// The kDrawnArrays of one frame that was just measured; frame numbers are ignored.
class MeasuredField final : public DrawnFields {
 public:
  /// Copies the arrays that it needs.
  MeasuredField(const Field& field, ResultInfo info);

  const ResultInfo& info() const override { return info_; }
  MovedGrid moved_grid(int) const override { return MovedGrid(field_); }
  std::vector<float> values(const std::string& name, int) const override;

 private:
  Field field_;
  ResultInfo info_;
};

}  // namespace dic::draw
