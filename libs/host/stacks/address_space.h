#pragma once
// The executable mappings of one process: told by the kernel as they are made, or read from /proc when an address is
// unknown.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "host/stacks/module.h"

namespace llmprof::host {

struct Mapping {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t file_offset = 0, inode = 0;
  std::string path;  // "" for anonymous memory
};

// All modules in use, each once.
class ModuleCache {
 public:
  // nullptr if the file cannot be read or is no ELF file of this machine.
  std::shared_ptr<Module> get(pid_t pid, const Mapping& mapping);

 private:
  std::map<std::pair<std::uint64_t, std::string>, std::shared_ptr<Module>> modules_;  // by inode and path
};

class AddressSpace {
 public:
  AddressSpace(pid_t pid, ModuleCache& modules) : pid_(pid), modules_(&modules) {}

  struct Place {
    Module* module = nullptr;   // nullptr: executable memory without a file that we can read
    std::uint64_t address = 0;  // in the module's file
    std::uint64_t bias = 0;     // address in the process less that in the file
  };

  // Executable memory only: false for anything else. `now_ns`: any steady clock; /proc is read again at most once in
  // 100 ms.
  bool find(std::uint64_t address, std::uint64_t now_ns, Place& place);

  void add(const Mapping& mapping);
  void clear() { mappings_.clear(); }  // a new program
  void inherit(const AddressSpace& parent) { mappings_ = parent.mappings_; }
  void read_proc();
  pid_t pid() const { return pid_; }

  // The first module that has a symbol of this name; for tests and tools that have no sample to go by.
  bool find_symbol(std::string_view name, Place& place);

 private:
  struct Entry {
    Mapping mapping;
    std::shared_ptr<Module> module;
    std::uint64_t bias = 0;
    bool looked = false;
  };
  Entry* entry_of(std::uint64_t address);
  void load(Entry& entry);

  pid_t pid_;
  ModuleCache* modules_;
  std::map<std::uint64_t, Entry> mappings_;  // by begin
  std::uint64_t proc_read_ns_ = 0;
};

}  // namespace llmprof::host
