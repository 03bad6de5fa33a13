#pragma once
// The loss ledger: everything llmprof can fail to see, with what it means and what to do about it (wire/losses.def).
// Collector, ingest, importers and analysis all add rows of the `loss` table by these names; every report prints them.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "wire/loss_kind.h"

namespace llmprof::trace {

enum class Severity : std::uint8_t { kInfo, kDegraded, kDataLoss };

// In the order of losses.def: the collector's first, with the numbers of wire::LossKind.
enum class Loss : std::uint8_t {
  kNone,
#define COLLECTOR_LOSS(loss, ...) loss,
#define LOSS(loss, ...) loss,
#include "wire/losses.def"
  kCount,
};

struct LossInfo {
  std::string_view name;
  Severity severity;
  std::string_view unit;  // what `count` counts
  std::string_view meaning;
  std::string_view remedy;
};

inline constexpr std::array<LossInfo, static_cast<std::size_t>(Loss::kCount)> kLossInfo{{
    {"none", Severity::kInfo, "", "", ""},
#define COLLECTOR_LOSS(loss, detail, name, severity, unit, meaning, remedy) \
  {name, Severity::severity, unit, meaning, remedy},
#define LOSS(loss, name, severity, unit, meaning, remedy) {name, Severity::severity, unit, meaning, remedy},
#include "wire/losses.def"
}};

constexpr bool is_of_collector(std::size_t number) {
  return number > 0 && number < static_cast<std::size_t>(wire::LossKind::kCount);
}
constexpr const LossInfo& info_of(Loss loss) { return kLossInfo[static_cast<std::size_t>(loss)]; }
constexpr std::string_view name_of(Severity severity) {
  return severity == Severity::kInfo ? "info" : severity == Severity::kDegraded ? "degraded" : "data_loss";
}

// One row of the ledger as every verb prints it: "LOST: size_limit, 3 records: the recording reached --max-size. To do:
// …".
struct LossEntry {
  std::string_view name, severity;
  std::int64_t count = 0;
  std::string_view unit, meaning, remedy, detail;
};
std::string describe(const LossEntry& entry);

}  // namespace llmprof::trace
