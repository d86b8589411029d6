#include "figures/cairo_canvas.hpp"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <memory>
#include <numbers>
#include <opencv2/core/types.hpp>
#include <span>
#include <utility>

#include "draw/put_rows.hpp"

namespace dic::figures {
namespace {

template <auto destroy>
struct Destroy {
  template <typename T>
  void operator()(T* object) const {
    destroy(object);
  }
};
using Surface = std::unique_ptr<cairo_surface_t, Destroy<cairo_surface_destroy>>;
using Context = std::unique_ptr<cairo_t, Destroy<cairo_destroy>>;

cairo_status_t append(void* bytes, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

/// The pixels of an image surface: words of 32 bits with R, G, B in the lower 24 bits.
class PixelWords {
 public:
  explicit PixelWords(cairo_surface_t* surface) : surface_(surface) { cairo_surface_flush(surface); }

  cv::Size size() const {
    return {cairo_image_surface_get_width(surface_), cairo_image_surface_get_height(surface_)};
  }
  std::uint32_t* row(int y) const {
    return reinterpret_cast<std::uint32_t*>(cairo_image_surface_get_data(surface_) +
                                            std::ptrdiff_t{y} * cairo_image_surface_get_stride(surface_));
  }

 private:
  cairo_surface_t* surface_;
};

class CairoCanvas final : public Canvas {
 public:
  CairoCanvas(Format format, double resolution, const std::string& font, double width, double height)
      : format_(format), resolution_(resolution), bytes_(std::make_unique<std::string>()) {
    surface_ = make_surface(width, height);
    context_.reset(cairo_create(surface_.get()));
    if (format_ == Format::png) cairo_scale(context_.get(), resolution_, resolution_);
    cairo_select_font_face(context_.get(), font.c_str(), CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_line_cap(context_.get(), CAIRO_LINE_CAP_ROUND);
    cairo_set_line_join(context_.get(), CAIRO_LINE_JOIN_ROUND);
    set_colour({255, 255, 255});
    cairo_paint(context_.get());
  }

  double resolution() const override { return resolution_; }

  void polyline(std::span<const Point> points, Colour colour, double width) override {
    trace(points);
    set_colour(colour);
    cairo_set_line_width(context_.get(), width);
    cairo_stroke(context_.get());
  }

  void polygon(std::span<const Point> points, Colour colour) override {
    trace(points);
    set_colour(colour);
    cairo_fill(context_.get());
  }

  void disc(Point centre, double radius, Colour colour) override {
    cairo_new_path(context_.get());
    cairo_arc(context_.get(), centre.x, centre.y, radius, 0, 2 * std::numbers::pi);
    set_colour(colour);
    cairo_fill(context_.get());
  }

  /// Draws an image. In a PNG its corner is rounded to whole pixels, so that it is not resampled.
  void image(const RgbRows& pixels, Point corner) override {
    if (format_ == Format::png)
      return put(pixels,
                 {static_cast<int>(std::lround(corner.x * resolution_)),
                  static_cast<int>(std::lround(corner.y * resolution_))},
                 surface_.get());
    const Surface image(
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, pixels.size.width, pixels.size.height));
    put(pixels, {0, 0}, image.get());
    cairo_save(context_.get());
    cairo_translate(context_.get(), corner.x, corner.y);
    cairo_scale(context_.get(), 1 / resolution_, 1 / resolution_);
    cairo_set_source_surface(context_.get(), image.get(), 0, 0);
    cairo_pattern_set_filter(cairo_get_source(context_.get()), CAIRO_FILTER_NEAREST);
    cairo_paint(context_.get());
    cairo_restore(context_.get());
  }

  void text(std::string_view words, Point at, double size, Colour colour, Align align) override {
    const std::string text(words);
    const double width = align == Align::left ? 0 : width_of(words, size);
    set_colour(colour);
    cairo_set_font_size(context_.get(), size);
    cairo_move_to(context_.get(), at.x - (align == Align::right ? width : width / 2), at.y);
    cairo_show_text(context_.get(), text.c_str());
  }

  double width_of(std::string_view words, double size) const override {
    cairo_text_extents_t extents;
    cairo_set_font_size(context_.get(), size);
    cairo_text_extents(context_.get(), std::string(words).c_str(), &extents);
    return extents.x_advance;
  }

  void write(const std::filesystem::path& path) override {
    context_.reset();
    if (format_ == Format::png) return write_png(path);
    cairo_surface_finish(surface_.get());
    if (const cairo_status_t status = cairo_surface_status(surface_.get()); status != CAIRO_STATUS_SUCCESS)
      throw FileError("'" + path.string() + "' cannot be drawn (" + cairo_status_to_string(status) + ").");
    write_text_file(path, *bytes_);
  }

 private:
  Surface make_surface(double width, double height) const {
    if (format_ == Format::pdf)
      return Surface(cairo_pdf_surface_create_for_stream(append, bytes_.get(), width, height));
    if (format_ == Format::svg)
      return Surface(cairo_svg_surface_create_for_stream(append, bytes_.get(), width, height));
    return Surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                              static_cast<int>(std::ceil(width * resolution_ - 1e-6)),
                                              static_cast<int>(std::ceil(height * resolution_ - 1e-6))));
  }

  void set_colour(Colour c) { cairo_set_source_rgb(context_.get(), c.r / 255.0, c.g / 255.0, c.b / 255.0); }

  /// Sets the path. A text leaves a current point, from which a path would continue.
  void trace(std::span<const Point> points) {
    cairo_new_path(context_.get());
    for (const Point& p : points) cairo_line_to(context_.get(), p.x, p.y);
  }

  /// Copies pixels into the memory of an image surface.
  static void put(const RgbRows& pixels, cv::Point at, cairo_surface_t* surface) {
    const PixelWords words(surface);
    draw::put_rows(pixels, at, words.size(), [&](int x, int y, std::span<const std::uint8_t> rgb) {
      std::uint32_t* word = words.row(y) + x;
      for (auto c = rgb.begin(); c != rgb.end(); c += 3)
        *word++ = std::uint32_t{c[0]} << 16 | c[1] << 8 | c[2];
    });
    cairo_surface_mark_dirty(surface);
  }

  void write_png(const std::filesystem::path& path) {
    const PixelWords words(surface_.get());
    const cv::Size size = words.size();
    write_image(path, RgbRows{{size.width, size.height}, [&](int y, std::span<std::uint8_t> rgb) {
                                const std::uint32_t* word = words.row(y);
                                for (auto c = rgb.begin(); c != rgb.end(); c += 3, ++word)
                                  c[0] = static_cast<std::uint8_t>(*word >> 16),
                                  c[1] = static_cast<std::uint8_t>(*word >> 8),
                                  c[2] = static_cast<std::uint8_t>(*word);
                              }});
  }

  Format format_;
  double resolution_;
  std::unique_ptr<std::string> bytes_;
  Surface surface_;
  Context context_;
};

/// Discards everything that is written to stderr during its lifetime.
class SilentStderr {
 public:
  SilentStderr() : before_(::dup(STDERR_FILENO)) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (before_ >= 0 && nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) ::close(nowhere);
  }
  ~SilentStderr() {
    if (before_ < 0) return;
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  SilentStderr(const SilentStderr&) = delete;
  SilentStderr& operator=(const SilentStderr&) = delete;

 private:
  int before_;
};

/// True if the system has fonts. Fontconfig then reads its configuration, and complains if it is missing or
/// of a newer version.
bool find_fonts() {
  const SilentStderr silent;
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1));
  const Context context(cairo_create(surface.get()));
  return cairo_scaled_font_get_type(cairo_get_scaled_font(context.get())) != CAIRO_FONT_TYPE_USER;
}

/// True if the system has fonts. The first call takes 10 ms, when the first figure is drawn.
bool has_fonts() {
  static const bool found = find_fonts();
  return found;
}

}  // namespace

CanvasFactory canvases(Format format, double resolution, const std::string& font) {
  return [=](double width, double height) -> std::unique_ptr<Canvas> {
    // Cairo's own font has no Greek letters; OpenCV's canvas spells them out.
    if (!has_fonts() && format == Format::png && resolution == 1) return png_canvases()(width, height);
    return std::make_unique<CairoCanvas>(format, resolution, font, width, height);
  };
}

}  // namespace dic::figures
