#include <cmath>
#include <dic/match.hpp>
#include <numbers>

#include "validate/validate.hpp"

namespace dic::validation {
namespace {

constexpr double kDegree = std::numbers::pi / 180;

/// The square around a part, whose pixels outside the part do not count.
struct PartTemplate {
  ImageView pixels;
  Image mask;
};

PartTemplate template_of(const Image& reference, const Case::Part& part) {
  const int side = 2 * part.radius + 1;
  PartTemplate made{reference.view(), Image({side, side}, ScalarType::u8)};
  made.pixels.data = static_cast<const std::byte*>(made.pixels.data) +
                     (part.y - part.radius) * made.pixels.row_bytes +
                     static_cast<std::ptrdiff_t>((part.x - part.radius) * size_of(reference.type()));
  made.pixels.width = made.pixels.height = side;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const int dx = x - part.radius, dy = y - part.radius;
      // The outermost pixels show the background as well.
      made.mask.row<std::uint8_t>(y)[x] = dx * dx + dy * dy < (part.radius - 1) * (part.radius - 1) ? 255 : 0;
    }
  return made;
}

/// Angle, radians, and scale of the motion of a part.
std::array<double, 2> turn_of(const Motion& motion, const Case::Part& part) {
  if (motion.kind == MotionKind::bodies) {
    const int body = motion.body(part.x, part.y);
    return {body > 0 ? motion.bodies[body - 1].angle_deg * kDegree : 0, 1};
  }
  const double a = 1 + motion.ux, b = motion.uy, c = motion.vx, d = 1 + motion.vy;
  return {std::atan2(c - b, a + d), std::sqrt(std::abs(a * d - b * c))};
}

/// The centre, and the motion of the rim by angle and scale, each judged as a point.
void judge_match(const MatchResult& result, const Case::Part& part, const Motion& motion, bool has_scale,
                 Judge& judge) {
  const auto [u, v] = motion.at(part.x, part.y, 1);
  const auto [radians, scale] = turn_of(motion, part);
  JudgedPoint centre{.status = Status::low_correlation, .true_u = u, .true_v = v}, rim = centre;
  rim.true_u = rim.true_v = 0;
  if (!result.matches.empty()) {
    const Match& m = result.matches.front();
    centre.status = rim.status = Status::ok;
    centre.u = m.center_x - part.x, centre.v = m.center_y - part.y;
    centre.sigma_u = m.sigma_x, centre.sigma_v = m.sigma_y;
    rim.u = part.radius * std::remainder(m.rotation_deg * kDegree - radians, 2 * std::numbers::pi);
    rim.sigma_u = part.radius * m.sigma_rotation_deg * kDegree;
    rim.v = has_scale ? part.radius * (m.scale / scale - 1) : rim.u;
    rim.sigma_v = has_scale ? part.radius * m.sigma_scale / scale : rim.sigma_u;
  }
  judge.add(centre);
  judge.add(rim);
}

}  // namespace

Metrics judge_parts(const Case& one, const Image& reference, const Image& current, const Motion& motion,
                    const Options& options, const std::stop_token& stop) {
  std::vector<PartTemplate> made;
  std::vector<ImageView> templates, masks;
  for (const Case::Part& part : one.parts) made.push_back(template_of(reference, part));
  for (const PartTemplate& part : made) templates.push_back(part.pixels), masks.push_back(part.mask);
  MatchOptions match;
  match.rotation_range = {-180, 180};
  if (motion.kind != MotionKind::bodies) match.scale_range = {0.8, 1.25};
  match.device = "cpu";
  match.threads = options.track.threads;
  Matcher matcher(templates, match, masks);
  Judge judge;
  for (int k = 0; k < matcher.templates(); ++k)
    judge_match(matcher.find_template(k, current, stop), one.parts[k], motion, match.scale_range.has_value(),
                judge);
  return judge.metrics();
}

}  // namespace dic::validation
