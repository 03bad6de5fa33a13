#pragma once
// What members of rows are.

#include <cstdint>
#include <optional>

#include "trace/schema.h"

namespace llmprof::trace {

using Id = std::int64_t;
using OptionalId = std::optional<std::int64_t>;
using OptionalInt = std::optional<std::int64_t>;
using OptionalInt32 = std::optional<std::int32_t>;
using OptionalDouble = std::optional<double>;

}  // namespace llmprof::trace
