#pragma once
// Compressed content for tests.

#include <isa-l/igzip_lib.h>
#include <zstd.h>

#include <string>
#include <vector>

namespace llmprof::importers {

inline std::string gzipped(std::string text) {
  std::vector<std::uint8_t> level(ISAL_DEF_LVL1_DEFAULT);
  std::string out(text.size() + text.size() / 8 + 1024, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.level = 1;
  stream.level_buf = level.data();
  stream.level_buf_size = static_cast<std::uint32_t>(level.size());
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(text.data());
  stream.avail_in = static_cast<std::uint32_t>(text.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  isal_deflate_stateless(&stream);
  out.resize(stream.total_out);
  return out;
}

inline std::string zstd_packed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

}  // namespace llmprof::importers
