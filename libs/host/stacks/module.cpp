#include "host/stacks/module.h"

#include <fmt/format.h>

#include <cxxabi.h>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace llmprof::host {

namespace {

// Addresses remembered per kind and module. Return addresses come again and again; a program with more distinct ones
// than this pays for working them out anew.
constexpr std::size_t kMaxRemembered = 16384;

// The tables of a file. What find_unwind_row() asks to view is the FDE, then its CIE.
struct FileTables {
  const ElfFile& file;
  UnwindRow* row = nullptr;

  bool read(std::uint64_t address, void* out, std::size_t bytes) const {
    return file.read_address(address, out, bytes);
  }
  const std::uint8_t* view(std::uint64_t address, std::size_t bytes) const {
    std::vector<std::uint8_t>& entry = row->fde.empty() ? row->fde : row->cie;
    entry.resize(bytes);
    return read(address, entry.data(), bytes) ? entry.data() : nullptr;
  }
};

}  // namespace

Module::Module(std::string path, ElfFile file, std::string root)
    : path_(std::move(path)),
      short_name_(path_.substr(path_.rfind('/') + 1)),
      root_(std::move(root)),
      file_(std::move(file)) {
  FileTables tables{file_};
  index_ = wire::read_unwind_index(tables, file_.unwind_table_address(), file_.unwind_table_bytes());
}

const UnwindRow* Module::row(std::uint64_t address) {
  if (rows_.size() > kMaxRemembered) rows_.clear();
  const auto [place, fresh] = rows_.try_emplace(address);
  if (fresh) {
    FileTables tables{file_, &place->second.emplace()};
    if (!wire::find_unwind_row(tables, index_, address, tables.row)) place->second.reset();
  }
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
  if (symbols_ == nullptr) symbols_ = std::make_unique<Symbols>(file_, path_, std::vector<std::string>{root_, ""});
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

namespace {

constexpr std::size_t kLongest = 200;
constexpr std::string_view kOperator = "operator", kAnonymous = "(anonymous namespace)";

// Length of "operator<<", "operator()" and alike at this place, whose brackets are not brackets; else 0.
std::size_t operator_at(std::string_view text) {
  if (!text.starts_with(kOperator)) return 0;
  for (const std::string_view sign : {"()", "[]", "<<=", ">>=", "<=>", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"}) {
    if (text.substr(kOperator.size()).starts_with(sign)) return kOperator.size() + sign.size();
  }
  return 0;
}

// The name with everything in <> and () left out; {} are kept, for lambdas. Nothing if brackets do not match.
std::optional<std::string> without_brackets(std::string_view text) {
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (const std::size_t length = operator_at(text.substr(i)); length > 0) {
      if (depth == 0) out += text.substr(i, length);
      i += length - 1;
    } else if (depth == 0 && text.substr(i).starts_with(kAnonymous)) {
      out += kAnonymous;
      i += kAnonymous.size() - 1;
    } else if (text[i] == '<' || text[i] == '(') {
      ++depth;
    } else if (text[i] == '>' || text[i] == ')') {
      --depth;
      if (depth < 0) return std::nullopt;
    } else if (depth == 0) {
      out += text[i];
    }
  }
  if (depth != 0) return std::nullopt;
  return out;
}

}  // namespace

std::string shorten_function(const std::string& demangled) {
  const std::optional<std::string> short_name = without_brackets(demangled);
  if (!short_name) return demangled.substr(0, kLongest);
  std::string name = *short_name;
  while (name.ends_with(' ')) name.pop_back();
  for (const std::string_view tail : {" const", " volatile", " &&", " &"}) {
    if (name.size() > tail.size() && std::string_view(name).ends_with(tail)) name.resize(name.size() - tail.size());
  }
  // A template's name begins with its return type. Spaces also stand in "(anonymous namespace)" and "operator bool".
  const std::size_t stop = std::min(name.find(kOperator), name.find('{'));
  std::size_t from = std::string::npos;
  for (std::size_t i = 0; i < name.size() && i < stop; ++i) {
    if (std::string_view(name).substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (name[i] == ' ') {
      from = i;
    }
  }
  const std::size_t clone = demangled.find(" [clone ");
  if (from != std::string::npos && clone == std::string::npos) name = name.substr(from + 1);
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "…";
  return name;
}

std::string readable_function(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol.size() > kLongest ? symbol.substr(0, kLongest) + "…" : symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return status == 0 && text != nullptr ? shorten_function(text.get()) : symbol.substr(0, kLongest);
}

}  // namespace llmprof::host
