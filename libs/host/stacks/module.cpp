#include "host/stacks/module.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "host/stacks/function_name.h"

namespace llmprof::host {
namespace {

// Addresses remembered per kind and module. Return addresses come again and again; a program with more distinct ones
// than this pays for working them out anew.
constexpr std::size_t kMaxRemembered = 16384;

}  // namespace

Module::Module(std::string path, ElfFile file)
    : path_(std::move(path)), short_name_(path_.substr(path_.rfind('/') + 1)), file_(std::move(file)), table_(file_) {}

const UnwindRow* Module::row(std::uint64_t address) {
  if (rows_.size() > kMaxRemembered) rows_.clear();
  const auto [place, fresh] = rows_.try_emplace(address);
  if (fresh) place->second = table_.row(file_, address);
  return place->second ? &*place->second : nullptr;
}

bool Module::follows_call(std::uint64_t address) {
  if (calls_.size() > kMaxRemembered) calls_.clear();
  const auto [place, fresh] = calls_.try_emplace(address);
  if (!fresh) return place->second;
  constexpr std::size_t kLongestCall = 7;
  std::array<std::uint8_t, kLongestCall> code{};
  if (address < kLongestCall || !file_.read_address(address - kLongestCall, code.data(), code.size())) return false;
  bool call = code[2] == 0xe8;  // relative, 5 bytes
  // Through a register or memory: ff with 2 in the middle of the next byte; 2, 3, 4, 6 or 7 bytes with its operands.
  for (const std::size_t length : {2, 3, 4, 6, 7}) {
    const std::size_t at = kLongestCall - length;
    call = call || (code[at] == 0xff && (code[at + 1] >> 3 & 7) == 2);
  }
  return place->second = call;
}

std::optional<std::uint64_t> Module::call_target(std::uint64_t address) const {
  std::array<std::uint8_t, 5> code{};
  if (address < code.size() || !file_.read_address(address - code.size(), code.data(), code.size())) return {};
  if (code[0] != 0xe8) return std::nullopt;
  std::int32_t distance = 0;
  std::memcpy(&distance, code.data() + 1, sizeof distance);
  return address + static_cast<std::uint64_t>(std::int64_t{distance});
}

const Symbols& Module::symbols() {
  if (symbols_ == nullptr) symbols_ = std::make_unique<Symbols>(file_);
  return *symbols_;
}

const NativeFunction& Module::function(std::uint64_t address) {
  if (function_at_.size() > kMaxRemembered) function_at_.clear();
  const auto [place, fresh] = function_at_.try_emplace(address);
  if (!fresh) return *place->second;
  const std::optional<Symbols::Place> symbol = symbols().containing(address);
  std::uint64_t begin = symbol ? symbol->begin : address;
  if (!symbol) {  // without a name the unwind table still tells functions apart
    if (const UnwindRow* known = row(address); known != nullptr) begin = known->function_begin;
  }
  NativeFunction& function = functions_[begin];
  if (function.name.empty()) {
    function.begin = begin;
    function.name = symbol ? readable_function(symbol->name) : fmt::format("{}+{:#x}", short_name_, begin);
    // Compilers split the loop into hot and cold parts, named with a dot.
    function.python_loop =
        symbol && (symbol->name == "_PyEval_EvalFrameDefault" || symbol->name.starts_with("_PyEval_EvalFrameDefault."));
  }
  place->second = &function;
  return function;
}

}  // namespace llmprof::host
