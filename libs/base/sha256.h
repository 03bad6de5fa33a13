#pragma once
// SHA-256 (FIPS 180-4), for the hashes by which a page names the scripts and styles it allows.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace llmprof::base {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);
std::string base64(std::string_view bytes);  // RFC 4648, padded
// "sha256-…" as a Content-Security-Policy and the attribute integrity write it.
std::string sha256_source(std::string_view bytes);

}  // namespace llmprof::base
