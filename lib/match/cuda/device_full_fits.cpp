#include "match/cuda/device_full_fits.hpp"

#include <algorithm>
#include <dic/error.hpp>

namespace dic::match {

DevicePixels::DevicePixels(const PixelList& list, const kernels::Stream& stream) {
  std::vector<float> all;
  for (const auto* array : {&list.xi, &list.eta, &list.t, &list.tx, &list.ty})
    all.insert(all.end(), array->begin(), array->end());
  const float* first = upload(buffer_, all, stream);
  const std::size_t n = list.padded();
  pixels_ = {.xi = first,
             .eta = first + n,
             .t = first + 2 * n,
             .tx = first + 3 * n,
             .ty = first + 4 * n,
             .count = list.count,
             .padded = static_cast<int>(n),
             .mean = list.mean,
             .squares = list.squares};
}

/// The fits of one thread.
class DeviceFullFits::Fits final : public FullFits {
 public:
  Fits(DeviceFullFits& owner, std::unique_lock<std::mutex> lock) : owner_(owner), lock_(std::move(lock)) {}

  PoseFit refine(const PixelList& pixels, const pose::Warp& start, const RefinementPlan& plan) override {
    if (plan.stop.stop_requested()) throw Cancelled("Template matching was cancelled.");
    const kernels::DeviceScope scope(owner_.device_);
    const kernels::Stream& stream = owner_.stream_;
    const kernels::PosePixels& list = owner_.on_device(pixels);
    auto* answer = owner_.answer_.reserve<kernels::WholeResult>(1);
    const kernels::WholeResult* result =
        kernels::launch_whole_fit(owner_.spline_, list, plan, start, memory_of(list), stream.handle());
    kernels::download(answer, result, sizeof(*answer), stream);
    stream.synchronize("the fit of a template");
    last_ = *answer;
    return {last_.fit};
  }

  void with_sigmas(const PixelList& pixels, const RefinementPlan& plan, PoseFit& fit) override {
    const kernels::DeviceScope scope(owner_.device_);
    const kernels::Stream& stream = owner_.stream_;
    const int stride = sigma_stride(pixels, plan), count = pixels_of_groups(pixels.count, stride);
    auto* fitted = owner_.fitted_.reserve<kernels::FittedPixel>(count);
    auto* slopes = owner_.slopes_.reserve<double>(2);
    last_.fit.warp = fit.warp;
    const kernels::PosePixels& list = owner_.on_device(pixels);
    kernels::launch_fitted_pixels(owner_.spline_, list, memory_of(list), last_, stride, count, fitted, slopes,
                                  stream.handle());
    static_assert(sizeof(FittedPixels::Pixel) == sizeof(kernels::FittedPixel) &&
                  FittedPixels::kGroup == kernels::FittedPixel::kGroup);
    FittedPixels all;
    all.pixels.resize(count);
    double sums[2] = {};
    kernels::download(all.pixels.data(), fitted, count * sizeof(kernels::FittedPixel), stream);
    kernels::download(sums, slopes, sizeof(sums), stream);
    stream.synchronize("pixels of a fit");
    add_sigmas(all, last_.limit > 0 ? weight_slope(sums[0], sums[1]) : 1, pixels, plan, fit);
  }

 private:
  /// Number of pixels of every `stride`-th group; the last group may be shorter.
  static int pixels_of_groups(int pixels, int stride) {
    int count = 0;
    for (int first = 0; first < pixels; first += stride * FittedPixels::kGroup)
      count += std::min(FittedPixels::kGroup, pixels - first);
    return count;
  }
  kernels::WholeMemory memory_of(const kernels::PosePixels& list) {
    return {owner_.values_.reserve<float>(list.padded), owner_.weights_.reserve<float>(list.padded),
            owner_.scratch_.reserve(kernels::whole_fit_bytes())};
  }

  DeviceFullFits& owner_;
  std::unique_lock<std::mutex> lock_;
  kernels::WholeResult last_;
};

void DeviceFullFits::set_image(const kernels::DeviceImage& image, ScalarType type, const float* mask) {
  image_ = image, type_ = type;
  spline_.mask = mask, spline_.width = image.width, spline_.height = image.height;
  has_spline_ = false;
}

std::unique_ptr<FullFits> DeviceFullFits::open() {
  std::unique_lock lock(mutex_);
  const kernels::DeviceScope scope(device_);
  if (!has_spline_ && !make_spline()) return nullptr;
  return std::make_unique<Fits>(*this, std::move(lock));
}

bool DeviceFullFits::make_spline() {
  const kernels::PlaneLayout layout(image_.width, image_.height);
  const std::size_t bytes = layout.elements() * sizeof(kernels::CoefficientPair);
  if (coefficients_.size() < bytes && kernels::free_memory() / 2 < bytes) return false;
  auto* plane = coefficients_.reserve<kernels::CoefficientPair>(layout.elements()) + layout.origin();
  const ImageView view{image_.data, type_, image_.width, image_.height, image_.row_bytes, 0};
  kernels::launch_spline_coefficients(view, Interpolation::quintic, plane, stream_.handle());
  spline_.coefficients = plane, spline_.stride = layout.stride;
  has_spline_ = true;
  return true;
}

const kernels::PosePixels& DeviceFullFits::on_device(const PixelList& list) {
  return lists_.try_emplace(&list, list, stream_).first->second.pixels();
}

}  // namespace dic::match
