#pragma once

// Libraries are compiled with hidden visibility, so a shared libdic exports only what these macros mark:
// tests/unit/check_exports.py compares both.

/// Exports from the library or module that is being compiled.
#if defined(_WIN32)
#define DIC_EXPORT __declspec(dllexport)
#else
#define DIC_EXPORT __attribute__((visibility("default")))
#endif

/// Marks each function of a public header that libdic defines, and each public class that is thrown or has
/// virtual functions, so that its type is the same in libdic and its users. Other classes carry no mark:
/// their members do, which keeps Impl and private functions inside libdic. Empty for a static libdic, which
/// defines DIC_STATIC for its users.
#if defined(DIC_STATIC)
#define DIC_API
#elif defined(_WIN32) && !defined(DIC_BUILDING_LIBDIC)
#define DIC_API __declspec(dllimport)
#else
#define DIC_API DIC_EXPORT
#endif

/// Marks the functions of rooms that the program `dic` and the modules of libdic call. They are no public
/// interface: their headers are not installed.
#define DIC_INTERNAL_API DIC_API
