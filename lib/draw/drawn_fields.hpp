#pragma once

#include <dic/camera.hpp>
#include <dic/fields.hpp>
#include <dic/result.hpp>
#include <string>
#include <vector>

#include "draw/moved_grid.hpp"

namespace dic::draw {

/// Fields of frames to be drawn. Threads may ask at the same time.
class DrawnFields {
 public:
  virtual ~DrawnFields() = default;
  virtual const ResultInfo& info() const = 0;
  /// Where the nodes of a frame are in its image. Lives as long as the fields.
  virtual MovedGrid moved_grid(int frame) const = 0;
  /// An array with one component, or "magnitude" of the displacement: [ny x nx], in the unit of the result.
  /// Throws UsageError for an unknown name.
  virtual std::vector<float> values(const std::string& name, int frame) const = 0;
};

/// Of a result, which has to live as long.
class ResultFields final : public DrawnFields {
 public:
  /// camera: of the result, or null.
  ResultFields(const Result& result, const Camera* camera) : result_(result), camera_(camera) {}

  const ResultInfo& info() const override { return result_.info(); }
  MovedGrid moved_grid(int frame) const override;
  std::vector<float> values(const std::string& name, int frame) const override;

 private:
  const Result& result_;
  const Camera* camera_;
};

/// Of one frame that was just measured, whatever its number: u, v and the strain components exx, eyy and exy.
class MeasuredField final : public DrawnFields {
 public:
  /// Copies what it needs.
  MeasuredField(const Field& field, ResultInfo info);

  const ResultInfo& info() const override { return info_; }
  MovedGrid moved_grid(int) const override { return MovedGrid(field_); }
  std::vector<float> values(const std::string& name, int) const override;

 private:
  Field field_;
  ResultInfo info_;
};

}  // namespace dic::draw
