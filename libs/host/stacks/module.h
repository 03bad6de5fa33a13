#pragma once
// An executable or shared library as stacks need it: unwind rows and function names by address, remembered. Shared by
// all processes that map it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/stacks/elf.h"
#include "wire/eh_frame.h"

namespace llmprof::host {

// A row with the bytes of its CIE and FDE, which it points into.
struct UnwindRow : wire::UnwindRow {
  UnwindRow() = default;
  UnwindRow(UnwindRow&&) = default;
  UnwindRow& operator=(UnwindRow&&) = default;
  std::vector<std::uint8_t> fde, cie;
};

struct NativeFunction {
  std::uint64_t begin = 0;
  std::string name;          // readable, or "libx.so+0x1234" where the file has no name for it
  bool python_loop = false;  // CPython's interpreter loop: Python frames stand for it
};

class Module {
 public:
  // `root`: folder that stands for / where the file is used, for its debug file; "" our own.
  Module(std::string path, ElfFile file, std::string root = "");
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }
  const ElfFile& file() const { return file_; }
  bool has_unwind_table() const { return index_.entries > 0; }

  // Addresses are those of the file. nullptr: no row, or none that we understand. Valid until the next call.
  const UnwindRow* row(std::uint64_t address);
  // Whether the instruction before is a call: what a return address must look like.
  bool follows_call(std::uint64_t address);
  // Where the call before goes, if that stands in the instruction.
  std::optional<std::uint64_t> call_target(std::uint64_t address) const;
  // Stays valid.
  const NativeFunction& function(std::uint64_t address);
  std::optional<std::uint64_t> symbol(std::string_view name) { return symbols().address_of(name); }

 private:
  const Symbols& symbols();

  std::string path_, short_name_, root_;
  ElfFile file_;
  wire::UnwindIndex index_;
  std::unique_ptr<Symbols> symbols_;
  std::unordered_map<std::uint64_t, std::optional<UnwindRow>> rows_;
  std::unordered_map<std::uint64_t, bool> calls_;
  std::unordered_map<std::uint64_t, const NativeFunction*> function_at_;
  std::unordered_map<std::uint64_t, NativeFunction> functions_;  // by begin
};

// Names of functions as people read them.

// Demangles C++ names and leaves out what makes them long: template arguments, parameters, the return type.
// "at::native::(anonymous namespace)::copy_kernel". Others stay as they are.
std::string readable_function(const std::string& symbol);

// The shortening alone, of a demangled name.
std::string shorten_function(const std::string& demangled);

}  // namespace llmprof::host
