#pragma once
// A file packed into the program by llmprof_embed_assets (cmake/LlmprofAssets.cmake).

#include <span>
#include <string_view>

namespace llmprof::base {

struct Asset {
  std::string_view path;   // as listed in FILES
  std::string_view bytes;  // lives as long as the program
};

// Bytes of the asset with this path, or empty.
inline std::string_view find_asset(std::span<const Asset> assets, std::string_view path) {
  for (const Asset& asset : assets) {
    if (asset.path == path) return asset.bytes;
  }
  return {};
}

}  // namespace llmprof::base
