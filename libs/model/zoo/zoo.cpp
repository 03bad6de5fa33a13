#include "model/zoo/zoo.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include "base/asset.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/suggest.h"

namespace llmprof::model {

std::span<const base::Asset> assets();

namespace {

constexpr std::size_t kLongestName = 128;  // longer ones are nobody's typo; bounds the work of comparing
constexpr std::size_t kSuggestions = 5;

// What has to be the same for two names to be the same.
std::string key_of(std::string_view name) {
  std::string key;
  for (const char c : name.substr(0, kLongestName)) {
    if (c == '-' || c == '_' || c == ' ') continue;
    key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

std::string_view without_organisation(std::string_view id) { return id.substr(id.find('/') + 1); }

ZooEntry read_entry(const base::Json& json) {
  return {.name = json.at("name").get<std::string>(),
          .aliases = json.at("aliases").get<std::vector<std::string>>(),
          .config = base::to_text(json.at("config")),
          .source = json.at("source").get<std::string>(),
          .parameters = json.at("parameters").get<std::int64_t>(),
          .parameters_source = json.at("parameters_source").get<std::string>(),
          .notes = json.value("notes", "")};
}

// The files are part of the program: a test reads them all, so none is broken here.
std::vector<ZooEntry> read_zoo() {
  std::vector<ZooEntry> entries;
  for (const base::Asset& asset : assets()) {
    const Result<base::Json> file = base::parse_json(asset.bytes, asset.path);
    if (!file) continue;
    for (const base::Json& json : file->at("models")) entries.push_back(read_entry(json));
  }
  return entries;
}

bool is_called(const ZooEntry& entry, const std::string& key) {
  const auto same = [&](const std::string& id) { return key_of(id) == key || key_of(without_organisation(id)) == key; };
  return key_of(entry.name) == key || std::ranges::any_of(entry.aliases, same);
}

bool holds(const ZooEntry& entry, const std::string& key) {
  const auto inside = [&](std::string_view id) {
    return base::contains(base::name_key(without_organisation(id)), key);
  };
  return inside(entry.name) || std::ranges::any_of(entry.aliases, inside);
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = read_zoo();
  return entries;
}

const ZooEntry* find_in_zoo(std::string_view name) {
  if (name.size() > kLongestName) return nullptr;
  const std::string key = key_of(name);
  for (const ZooEntry& entry : zoo()) {
    if (is_called(entry, key)) return &entry;
  }
  return nullptr;
}

std::vector<const ZooEntry*> match_in_zoo(std::string_view typed) {
  std::string key = base::name_key(typed);
  std::vector<const ZooEntry*> found;
  const auto search = [&] {
    for (const ZooEntry& entry : zoo()) {
      if (!key.empty() && holds(entry, key)) found.push_back(&entry);
    }
  };
  search();
  for (const std::string_view ending : {"instruct", "chat", "it", "base", "hf"}) {
    if (!found.empty() || !key.ends_with(ending)) continue;
    key.resize(key.size() - ending.size());
    for (const ZooEntry& entry : zoo()) {
      if (is_called(entry, key)) return {&entry};
    }
    search();
  }
  return found;
}

std::vector<std::string> suggest(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ZooEntry& entry : zoo()) known.push_back(entry.name);
  return base::near_names(without_organisation(name), known, kSuggestions);
}

Result<Config> config_of(const ZooEntry& entry) {
  LLMPROF_LET(Config config, parse_config(entry.config, entry.name));
  config.name = entry.name;
  return config;
}

}  // namespace llmprof::model
