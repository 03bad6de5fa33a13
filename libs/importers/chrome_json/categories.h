#pragma once
// What complete events are, by their category.

#include <cstdint>
#include <string_view>

namespace llmprof::importers::chrome_json {

enum class Category : std::uint8_t {
  kOther,
  kOp,
  kAnnotation,
  kGpuAnnotation,
  kPython,
  kKernel,
  kCopy,
  kCall,
  kOverhead,
  kSync,
  kSpan,
};

// As Kineto writes them now, and as PyTorch 1.8 to 1.11 did.
Category category_of(std::string_view text);

}  // namespace llmprof::importers::chrome_json
