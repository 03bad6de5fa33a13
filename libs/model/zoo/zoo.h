#pragma once
// Built-in names of well-known public models: data files (*.json beside this), each number with its source.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace llmprof::model {

struct ZooEntry {
  std::string name;                  // "llama-3.2-1b"
  std::vector<std::string> aliases;  // ids of the hub and other short forms
  std::string config;                // the text of a config.json: the keys that matter
  std::string source;                // where its numbers were read
  std::int64_t parameters = 0;       // sum over the checkpoint's tensors, from outside this program
  std::string parameters_source;
  std::string notes;  // may be empty
};

// In the order of the files.
const std::vector<ZooEntry>& zoo();

// By name or alias, with or without the hub's organisation. Case, '-', '_' and spaces do not matter: "Llama3.2-1B",
// "meta-llama/Llama-3.2-1B-Instruct". nullptr if unknown.
const ZooEntry* find_in_zoo(std::string_view name);

// Those whose name or an alias contains what was typed, without case and punctuation; endings that do not change the
// architecture ("-instruct", "-chat", "-it", "-base", "-hf") may be missing in them. For names that people type.
std::vector<const ZooEntry*> match_in_zoo(std::string_view typed);

// Names that were perhaps meant, nearest first; few, perhaps none.
std::vector<std::string> suggest(std::string_view name);

// parse_config of the entry, named after it.
Result<Config> config_of(const ZooEntry& entry);

}  // namespace llmprof::model
