#pragma once
// Pictures as PNG: SVG text drawn by librsvg and cairo, which are loaded by dlopen when a PNG is asked for.

#include <string>

#include "base/result.h"

namespace llmprof::report {

// The bytes of a PNG file, `scale` times as large as the SVG says, on white. kUnsupported without the libraries, with
// the names of their packages.
Result<std::string> svg_to_png(const std::string& svg, double scale = 2);

}  // namespace llmprof::report
