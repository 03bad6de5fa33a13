#pragma once
// Names of functions that no mapped file tells: those of the kernel (/proc/kallsyms) and those that a JIT compiler
// wrote into a perf map file (/tmp/perf-PID.map: Python's -X perf, Node's --perf-basic-prof, Java's perf-map-agent).

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof::host {

// The text of /proc/kallsyms: "ffffffff81000000 T name\t[module]" per line.
class KernelSymbols {
 public:
  struct Function {
    std::string_view name, module;  // module: "[kernel]", or a module's "[nvidia]"
  };

  explicit KernelSymbols(std::string text);
  static KernelSymbols read();  // of this machine; takes some 50 ms

  bool known() const { return !functions_.empty(); }  // false: unreadable, or addresses are hidden from us
  // The function that holds the address; its begin names it for ever. nullptr: unknown.
  const Function* containing(std::uint64_t address, std::uint64_t& begin) const;

 private:
  struct Entry {
    std::uint64_t begin = 0;
    Function function;
  };
  std::unique_ptr<const std::string> text_;  // names point into it, also when this is moved
  std::vector<Entry> functions_;             // by address
};

// The kernel's own are on the last addresses: what lies there is no function, but says whose the next ones are.
inline bool is_context_marker(std::uint64_t address) { return address >= static_cast<std::uint64_t>(-4095); }

// "py::forward:/srv/model.py", as Python writes its functions.
struct PerfMapPython {
  std::string_view function, file;
};
bool parse_python_symbol(std::string_view symbol, PerfMapPython& out);

// The perf map file of one process, read as it grows. Anybody may have written it: only a regular file of the process's
// own user or of root is read, so many bytes of it, and no line is believed to be more than a name.
class PerfMap {
 public:
  explicit PerfMap(pid_t pid);
  PerfMap(std::string path, std::uint32_t owner) : paths_{std::move(path)}, owner_(owner) {}

  // nullptr: unknown. Looks into the file at most four times a second. Valid until the next call.
  const std::string* containing(std::uint64_t address, std::uint64_t now_ns);

 private:
  struct Symbol {
    std::uint64_t end = 0;
    std::string name;
  };
  const std::string* find(std::uint64_t address) const;
  void look();
  void take(std::string_view lines);
  void add(std::string_view line);

  std::vector<std::string> paths_;
  std::uint32_t owner_ = 0;
  std::map<std::uint64_t, Symbol> symbols_;  // by begin
  std::uint64_t read_bytes_ = 0;             // of the file so far
  std::uint64_t looked_ns_ = 0;
};

}  // namespace llmprof::host
