"""Tests check_exports.py: headers and symbols that fit are accepted, and each violation is reported."""

import tempfile
import unittest
from pathlib import Path

import check_exports

PUBLIC_HEADER = """
#define DIC_API __attribute__((visibility("default")))
namespace dic {
/// A comment; with void commented(int) and "text {".
enum class Kind : unsigned char { a, b };
DIC_API std::string_view to_string(Kind kind);
namespace io {
Kind open_kind(int value);
}
inline int twice(int value) { return 2 * value; }
struct Options {
  std::vector<std::string> names = {"a", "b"};
  std::function<void(int, double)> callback = {};
  DIC_API std::vector<std::string> validate() const;
  bool operator==(const Options&) const = default;
};
class DIC_API Source {
 public:
  virtual ~Source() = default;
  virtual double value(int i) const = 0;
};
class Tracker {
 public:
  DIC_API explicit Tracker(const Options& options = {.names = {}}, int threads = 0);
  DIC_API ~Tracker();
  DIC_API Tracker& operator=(Tracker&&) noexcept;
  DIC_API Tracker& operator+=(const Tracker& other);
  Tracker(Kind kind) : kind_{kind} { check(0); }
  template <typename T = double>
  DIC_API std::vector<T> values(std::string_view array, int frame) const;

 private:
  DIC_API void check(int frame) const;
  void hidden();
  friend Kind io::open_kind(int value);
  struct Impl;
  Kind kind_;
};
}  // namespace dic
"""
C_HEADER = 'extern "C" {\nDIC_C_API const char* dic_version(void);\n}\n'
ROOM_HEADER = "namespace dic::io {\nclass DIC_INTERNAL_API Refusal {};\nDIC_INTERNAL_API void write(int);\nvoid own(int);\n}\n"
GOOD = {
    "lib/include/dic/track.hpp": PUBLIC_HEADER,
    "lib/include/dic/dic.h": C_HEADER,
    "lib/io/file.hpp": ROOM_HEADER,
}
SYMBOLS = [
    "dic_version",
    "dic::to_string(dic::Kind)",
    "dic::Options::validate[abi:cxx11]() const",
    "typeinfo for dic::Source",
    "vtable for dic::Source",
    "dic::Tracker::Tracker(dic::Options const&, int)",
    "dic::Tracker::~Tracker()",
    "dic::Tracker::operator=(dic::Tracker&&)",
    "dic::Tracker::operator+=(dic::Tracker const&)",
    "dic::Tracker::check(int) const",
    "std::vector<double, std::allocator<double> > dic::Tracker::values<double>(std::basic_string_view<char, "
    "std::char_traits<char> >, int) const",
    "typeinfo name for dic::io::Refusal",
    "dic::io::write(int)",
]
# What is replaced by what in which header -> what is reported.
HEADER_VIOLATIONS = [
    ("lib/include/dic/track.hpp", "DIC_API std::string_view", "std::string_view", "dic::to_string is public"),
    ("lib/include/dic/track.hpp", "DIC_API std::vector<std", "std::vector<std", "dic::Options::validate is public"),
    ("lib/include/dic/track.hpp", "DIC_API ~Tracker", "~Tracker", "dic::Tracker::~Tracker is public"),
    ("lib/include/dic/track.hpp", "DIC_API std::vector<T>", "std::vector<T>", "dic::Tracker::values is public"),
    ("lib/include/dic/track.hpp", "DIC_API void check", "void check", "dic::Tracker::check is public"),
    ("lib/include/dic/track.hpp", "DIC_API std::string_view", "DIC_INTERNAL_API int", "in a public header"),
    ("lib/include/dic/dic.h", "DIC_C_API ", "", "dic_version is public"),
    ("lib/io/file.hpp", "DIC_INTERNAL_API void", "DIC_API void", "dic::io::write is declared with DIC_API in a room"),
]
SUPERFLUOUS = [
    "dic::to_string(dic::Kind, int)",
    "dic::Tracker::hidden()",
    "dic::Tracker::Impl::run()",
    "dic::io::own(int)",
    "dic_secret",
    "typeinfo for dic::Tracker",
    "std::vector<dic::Kind, std::allocator<dic::Kind> >::push_back(dic::Kind const&)",
    "cv::Mat::~Mat()",
    "H5Fopen",
]


class CheckExports(unittest.TestCase):
    def headers(self, replaced=None, old="", new=""):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in GOOD.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace(old, new) if name == replaced else text, encoding="utf-8")
            return list(check_exports.headers_of(Path(folder)))

    def test_good_headers_and_symbols_have_no_problems(self):
        headers = self.headers()
        self.assertEqual(list(check_exports.problems_of_headers(headers)), [])
        self.assertEqual(list(check_exports.problems_of_exports(headers, SYMBOLS)), [])

    def test_wrong_marks_are_reported(self):
        for name, old, new, message in HEADER_VIOLATIONS:
            with self.subTest(message):
                self.assertIn(old, GOOD[name])
                found = list(check_exports.problems_of_headers(self.headers(name, old, new)))
                self.assertEqual(len(found), 1, found)
                self.assertIn(message, found[0])

    def test_superfluous_symbols_are_reported(self):
        for symbol in SUPERFLUOUS:
            with self.subTest(symbol):
                found = list(check_exports.problems_of_exports(self.headers(), [*SYMBOLS, symbol]))
                self.assertEqual(found, [f"libdic exports {symbol}, which no header marks"])

    def test_missing_symbols_are_reported(self):
        for symbol in SYMBOLS:
            if " for " not in symbol:
                with self.subTest(symbol):
                    rest = [other for other in SYMBOLS if other != symbol]
                    found = list(check_exports.problems_of_exports(self.headers(), rest))
                    self.assertEqual(len(found), 1, found)
                    self.assertIn("libdic does not export", found[0])

    def test_internal_function_that_nobody_needs_is_reported(self):
        headers = self.headers()
        self.assertEqual(list(check_exports.problems_of_internals(headers, ["dic::io::write(int)", "malloc"])), [])
        found = list(check_exports.problems_of_internals(headers, ["dic::io::write(int, int)"]))
        self.assertEqual(found, ["nobody needs dic::io::write with 1 parameters, which is declared with DIC_INTERNAL_API"])

    def test_module_exports_one_function(self):
        def problems(symbols):
            return list(check_exports.problems_of_module(self.headers(), "dic_codecs", symbols))

        self.assertEqual(problems(["dic_codecs", "typeinfo for dic::Source"]), [])
        self.assertEqual(problems(["dic_codecs", "dic::io::write(int)"]), ["the module of dic_codecs exports dic::io::write(int)"])
        self.assertEqual(problems([]), ["the module of dic_codecs does not export it"])


if __name__ == "__main__":
    unittest.main()
