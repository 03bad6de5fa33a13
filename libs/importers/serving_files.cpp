#include "importers/serving_files.h"

#include "base/errors.h"
#include "importers/input.h"

namespace llmprof::importers {
namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{4} << 30;

}  // namespace

Result<std::string> read_text(const std::string& path) {
  LLMPROF_LET(Input input, Input::open(path, kMostFileBytes));
  Result<std::string> text = input.read_all(kMostFileBytes);
  if (!text) {
    text.error().message = path + ": " + text.error().message;
    return std::move(text.error());
  }
  for (const InputRemark& remark : input.remarks())
    return corrupt_error("{}: {}, {}", path, remark.what, remark.where);
  return text;
}

Result<serving::Workload> read_trace(const std::string& path, const serving::TraceOptions& options) {
  LLMPROF_LET(const std::string text, read_text(path));
  return serving::parse_trace(text, path, options);
}

Result<std::vector<serving::MeasuredRequest>> read_measured(const std::string& path) {
  LLMPROF_LET(const std::string text, read_text(path));
  return serving::parse_measured(text, path);
}

}  // namespace llmprof::importers
