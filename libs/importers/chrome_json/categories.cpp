#include "importers/chrome_json/categories.h"

namespace llmprof::importers::chrome_json {

Category category_of(std::string_view text) {
  struct Known {
    std::string_view text;
    Category category;
  };
  static constexpr Known kKnown[] = {
      {"cpu_op", Category::kOp},
      {"python_function", Category::kPython},
      {"kernel", Category::kKernel},
      {"gpu_memcpy", Category::kCopy},
      {"gpu_memset", Category::kCopy},
      {"user_annotation", Category::kAnnotation},
      {"gpu_user_annotation", Category::kGpuAnnotation},
      {"overhead", Category::kOverhead},
      {"cuda_sync", Category::kSync},
      {"Trace", Category::kSpan},
      {"Operator", Category::kOp},
      {"Kernel", Category::kKernel},
      {"Memcpy", Category::kCopy},
      {"Memset", Category::kCopy},
      {"Runtime", Category::kCall},
  };
  if (text.ends_with("_runtime") || text.ends_with("_driver")) return Category::kCall;
  for (const Known& known : kKnown) {
    if (known.text == text) return known.category;
  }
  return Category::kOther;
}

}  // namespace llmprof::importers::chrome_json
