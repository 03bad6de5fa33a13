#pragma once
// Models that huggingface_hub has downloaded to this machine. Nothing is fetched.

#include <optional>
#include <string>
#include <string_view>

namespace llmprof::model {

// "organisation/name", or "name" alone as early models have it.
bool looks_like_hub_id(std::string_view name);

// $HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub.
std::string hub_cache_folder();

// The snapshot of a repository folder "models--*": that of its main branch, else the newest. nullopt if it has none.
std::optional<std::string> snapshot_of(const std::string& repository_folder);
// The same of a hub id.
std::optional<std::string> find_in_hub_cache(std::string_view id);

}  // namespace llmprof::model
