#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <functional>
#include <vector>

#include "core/object_pool.hpp"
#include "core/parallel.hpp"

namespace dic::analysis {

/// Corrections of what a camera or a file format does to all images of a sequence, chosen from the reference:
/// defective pixels, columns and rows, a saturation below the largest value of the type, a large offset,
/// images of two values. Most images need none.
class Conditioning {
 public:
  /// reference: on the host. keep_scale: grey levels keep their size, because options are given in them.
  /// pool: must outlive this object.
  Conditioning(ImageView reference, bool keep_scale, core::ThreadPool& pool);

  bool needed() const { return maps_ || !defects_.empty(); }
  /// The corrected image, of the same type. image: on the host, with size and type of the reference.
  core::ObjectPool<Image>::Handle operator()(ImageView image) const;
  /// Writes the corrected image to where a GPU reads it, past the caches (core::copy_rows_uncached). to:
  /// aligned to 64 bytes; pitch: bytes from row to row, a multiple of 64, filled up with zeros.
  void write_uncached(ImageView image, std::byte* to, std::size_t pitch) const;
  /// Grey levels of corrected images per grey level of the camera.
  double gain() const { return gain_; }
  /// True if nearly all pixels of the reference are black or white.
  bool two_valued() const { return two_valued_; }
  /// Number of pixels that are replaced, because they, or the columns and rows that they belong to, stand out
  /// of their surroundings as no optics can show.
  std::int64_t defects() const { return std::ssize(defects_); }

 private:
  /// A pixel, and the pixels around it whose weighted sum replaces it.
  struct Defect {
    static constexpr int kReach = 2;
    static constexpr int kSide = 2 * kReach + 1;
    int x, y;
    std::array<float, kSide * kSide> weights;
  };

  template <typename T>
  void choose_map(ImageView reference, bool keep_scale);
  void find_defects(ImageView reference);
  template <typename T>
  void tabulate_map();
  template <typename T>
  T in_range(double grey) const;
  template <typename T>
  T mapped(T grey) const;
  template <typename T>
  void map_row(const T* from, T* to, int width) const;
  template <typename T>
  void write_rows_uncached(ImageView image, std::int64_t begin, std::int64_t end, std::byte* to,
                           std::size_t pitch) const;
  /// Calls rows(begin, end) for all rows of an image, by several threads.
  void for_rows(ImageView image, const std::function<void(std::int64_t begin, std::int64_t end)>& rows) const;
  /// Replaces the defects in an image whose other pixels are corrected. row: returns a row of it, T*.
  template <typename T, typename Row>
  void replace_defects(const Row& row) const;

  core::ThreadPool& pool_;
  bool maps_ = false, two_valued_ = false;
  double gain_ = 1, offset_ = 0;              ///< grey = gain * grey + offset
  double most_ = 0;                           ///< largest grey after the map, for integer types
  std::vector<std::uint16_t> mapped_levels_;  ///< greys after the map, of 8 and 16 bit; empty without a map
  core::ObjectPool<Image> images_;
  std::vector<Defect> defects_;
};

}  // namespace dic::analysis
