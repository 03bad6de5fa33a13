#include "analyze/design/sequences.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/design/memory.h"
#include "base/axis.h"

namespace llmprof::analyze::design {
namespace {

constexpr std::size_t kMostGroups = 10'000;

Error refuse(std::string_view item, std::string_view rule) {
  return {ErrorCode::kUsage, fmt::format("'{}': {}", item, rule),
          "write COUNTxTOKENS@CONTEXT, as in 8x1@2048,1x512@512"};
}

// "8x1@2048"; without a count one, without a context the tokens alone.
Result<model::Sequences> parse_one(std::string_view item) {
  model::Sequences sequences;
  const std::size_t x = item.find('x');
  const std::size_t at = std::min(item.find('@'), item.size());
  const std::size_t tokens_begin = x == std::string_view::npos || x > at ? 0 : x + 1;
  if (tokens_begin > 0) {
    LLMPROF_LET(sequences.count, base::parse_count(item.substr(0, x)));
  }
  LLMPROF_LET(sequences.tokens, base::parse_count(item.substr(tokens_begin, at - tokens_begin)));
  sequences.context = sequences.tokens;
  if (at < item.size()) {
    LLMPROF_LET(sequences.context, base::parse_count(item.substr(at + 1)));
  }
  if (sequences.count < 1 || sequences.tokens < 1) return refuse(item, "count and tokens are 1 at least");
  if (sequences.context < sequences.tokens) return refuse(item, "the context includes the new tokens");
  if (std::max(sequences.count, sequences.context) > kMost) return refuse(item, fmt::format("more than {}", kMost));
  return sequences;
}

}  // namespace

Result<std::vector<model::Sequences>> parse_sequences(std::string_view text) {
  std::vector<model::Sequences> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    Result<model::Sequences> one = parse_one(item);
    if (!one) return refuse(item, one.error().message);
    if (all.size() == kMostGroups) return refuse(item, "too many groups of sequences");
    all.push_back(*one);
    begin = end + 1;
  }
  return all;
}

}  // namespace llmprof::analyze::design
