// A capture log whose checksums are all right, whatever the rest says: a collector gone mad, or somebody who knows the
// format. The input is a log; magic numbers and checksums are put right before it is read.

#include <cstring>

#include "fuzz.h"
#include "log_through_ingest.h"
#include "wire/format.h"
#include "wire/primitives.h"

namespace llmprof::fuzz {
namespace {

void seal_file(std::string& log) {
  wire::FileHeader header;
  std::memcpy(&header, log.data(), sizeof header);
  std::memcpy(header.magic, wire::kFileMagic, sizeof header.magic);
  header.version = wire::kWireVersion;
  header.crc = wire::crc32c(&header, offsetof(wire::FileHeader, crc));
  std::memcpy(log.data(), &header, sizeof header);
}

// Makes a whole block of what stands at `at`; returns its end. A length beyond the file means "the rest".
std::size_t seal_block(std::string& log, std::size_t at) {
  wire::BlockHeader header;
  std::memcpy(&header, &log[at], sizeof header);
  const std::size_t left = log.size() - at - sizeof header;
  header.magic = wire::kBlockMagic;
  if (header.payload_bytes > left) header.payload_bytes = static_cast<std::uint32_t>(left);
  header.payload_crc = wire::crc32c(log.data() + at + sizeof header, header.payload_bytes);
  header.header_crc = wire::crc32c(&header, offsetof(wire::BlockHeader, header_crc));
  std::memcpy(&log[at], &header, sizeof header);
  return at + sizeof header + header.payload_bytes;
}

void run(std::string_view input) {
  if (input.size() < sizeof(wire::FileHeader)) return;
  std::string log(input);
  seal_file(log);
  for (std::size_t at = sizeof(wire::FileHeader); log.size() - at >= sizeof(wire::BlockHeader);)
    at = seal_block(log, at);
  log_through_ingest(log);
}

}  // namespace

const Target kTarget{run, sample_logs, log_words};

}  // namespace llmprof::fuzz
