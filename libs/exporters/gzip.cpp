#include "exporters/gzip.h"

#include <isa-l/igzip_lib.h>

#include <vector>

namespace llmprof::exporters {

Result<std::string> gzip(std::string_view bytes) {
  if (bytes.size() >= (1u << 31))
    return Error{ErrorCode::kUnsupported, "a profile of 2 GiB or more", "--window takes a part"};
  std::vector<std::uint8_t> work(ISAL_DEF_LVL1_DEFAULT);
  std::string packed(bytes.size() + bytes.size() / 64 + 4096, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.level = 1;
  stream.level_buf = work.data();
  stream.level_buf_size = static_cast<std::uint32_t>(work.size());
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<std::uint32_t>(bytes.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(packed.data());
  stream.avail_out = static_cast<std::uint32_t>(packed.size());
  const int status = isal_deflate_stateless(&stream);
  if (status != COMP_OK || stream.avail_in != 0)
    return Error{ErrorCode::kInternal, "gzip failed with status " + std::to_string(status), ""};
  packed.resize(stream.total_out);
  return packed;
}

}  // namespace llmprof::exporters
