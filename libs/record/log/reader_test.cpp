#include "record/log/reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "record/testing/cuda_log_builder.h"
#include "record/testing/log_builder.h"

namespace llmprof::record {
namespace {

// Losses stand in logs by these numbers: a new kind goes behind the last of the collector's.
static_assert(static_cast<int>(wire::LossKind::kBufferFull) == 1 &&
              static_cast<int>(wire::LossKind::kCountersShort) == 33);
static_assert(static_cast<int>(trace::Loss::kCountersShort) == 33 && static_cast<int>(trace::Loss::kNotInjected) == 34);

class TemporaryFile {
 public:
  TemporaryFile() : path_(testing::TempDir() + "llmprof_log_" + std::to_string(::getpid())) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& holding(const std::string& bytes) {
    std::filesystem::remove(path_);  // rewriting a file makes some file systems wait for the disk: 12 000 times here
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
    return path_;
  }

 private:
  std::string path_;
};

// Everything a log delivers, each item as text, so that logs can be compared.
class Collected final : public LogSink {
 public:
  void define(wire::StringId id, std::string_view text) override {
    items.push_back("string " + std::to_string(id) + " " + std::string(text));
  }
  void receive(wire::RecordKind, std::uint32_t thread, std::span<const wire::Record> records) override {
    for (const wire::Record& record : records) {
      items.push_back(std::to_string(thread) + std::string(reinterpret_cast<const char*>(&record), sizeof record));
    }
  }
  void gap() override { ++gaps; }

  std::vector<std::string> items;
  int gaps = 0;
};

bool is_subsequence(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  auto at = whole.begin();
  for (const std::string& item : part) {
    at = std::find(at, whole.end(), item);
    if (at == whole.end()) return false;
    ++at;
  }
  return true;
}

// A log as a collector writes it: five blocks, every kind of record.
std::string small_log() {
  LogBuilder log;
  log.process({.ts_ns = 1'000'000, .pid = 4242, .parent_pid = 1, .start_ticks = 1}, "/usr/bin/python3", "python3");
  log.thread(1, 4242, "main", 1'000'100);
  log.end_block();
  log.domain(1, "llmprof");
  log.category(1, 3, "stage");
  log.push(1, 1'000'200, "prefill",
           {.payload = 7, .category = 3, .domain = 1, .payload_type = wire::PayloadType::kUnsigned});
  log.gemm(1, "cblas_sgemm", {.begin_ns = 1'000'300, .end_ns = 1'000'900, .m = 8, .n = 512, .k = 128, .batch = 1});
  log.end_block();
  for (std::uint64_t i = 0; i < 20; ++i) {
    log.push(2, 1'001'000 + 10 * i, "layer");
    log.pop(2, 1'001'005 + 10 * i);
  }
  log.end_block();
  log.loss(wire::LossKind::kBufferFull, 17);
  log.range(2, wire::RangeOp::kMark, 1'002'000, "token");
  log.end_block();
  log.pop(1, 1'003'000, 1);
  log.process({.ts_ns = 1'004'000, .pid = 4242, .ended = 1}, "/usr/bin/python3", "python3");
  return log.bytes();
}

struct Reading {
  bool opened = false;
  bool header_damaged = false;
  LogStats stats;
  Collected collected;

  bool anything_reported() const {
    return !opened || header_damaged ||
           stats.damaged_bytes + stats.torn_bytes + stats.missing_blocks + stats.unknown_records > 0;
  }
};

Reading read_bytes(TemporaryFile& file, const std::string& bytes) {
  Reading reading;
  const auto reader = LogReader::open(file.holding(bytes));
  if (!reader) return reading;
  reading.opened = true;
  reading.header_damaged = reader->header_damaged();
  const auto stats = reader->read(reading.collected, base::no_progress);
  EXPECT_TRUE(stats);
  reading.stats = *stats;
  return reading;
}

TEST(LogReader, DeliversEverythingOfAWholeLog) {
  TemporaryFile file;
  const Reading reading = read_bytes(file, small_log());
  ASSERT_TRUE(reading.opened);
  EXPECT_EQ(reading.stats.blocks, 5u);
  // 2 process + thread + domain + category + push + gemm + 40 in the loop + loss + mark + pop
  EXPECT_EQ(reading.stats.records, 50u);
  // python3 path and name, host1, main, llmprof, stage, prefill, cblas_sgemm, library, layer, token
  EXPECT_EQ(reading.collected.items.size(), 50u + 11u);
  EXPECT_FALSE(reading.anything_reported());
  EXPECT_EQ(reading.collected.gaps, 0);
}

TEST(LogReader, EveryTruncationYieldsAPrefixAndSaysSo) {
  TemporaryFile file;
  const std::string whole = small_log();
  const Reading all = read_bytes(file, whole);
  std::vector<std::size_t> block_ends{sizeof(wire::FileHeader)};
  for (std::size_t at = block_ends[0]; at < whole.size();) {
    wire::BlockHeader header;
    std::memcpy(&header, whole.data() + at, sizeof header);
    at += sizeof header + header.payload_bytes;
    block_ends.push_back(at);
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Reading part = read_bytes(file, whole.substr(0, size));
    const auto& items = part.collected.items;
    ASSERT_LE(items.size(), all.collected.items.size());
    ASSERT_TRUE(std::equal(items.begin(), items.end(), all.collected.items.begin())) << "cut at " << size;
    // A cut between two blocks leaves a perfect shorter log; only the missing end record tells (loss abnormal_end).
    const bool between = std::find(block_ends.begin(), block_ends.end(), size) != block_ends.end();
    ASSERT_EQ(part.anything_reported(), !between) << "cut at " << size;
  }
}

TEST(LogReader, NoBitFlipIsAccepted) {
  TemporaryFile file;
  const std::string whole = small_log();
  const Reading all = read_bytes(file, whole);
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      const Reading part = read_bytes(file, flipped);
      ASSERT_TRUE(is_subsequence(part.collected.items, all.collected.items)) << "byte " << byte << " bit " << bit;
      ASSERT_TRUE(part.anything_reported()) << "byte " << byte << " bit " << bit;
      // Damage costs the block it is in and nothing else; a damaged file header costs no block at all.
      const std::uint64_t least = !part.opened ? 0 : byte < sizeof(wire::FileHeader) ? 5 : 4;
      ASSERT_GE(part.stats.blocks, least) << "byte " << byte;
    }
  }
}

TEST(LogReader, LostAndReorderedBlocksAreGaps) {
  TemporaryFile file;
  LogBuilder log;
  log.push(1, 1'000'000, "a");
  log.end_block();
  log.skip_block();
  log.pop(1, 1'000'100);
  const Reading reading = read_bytes(file, log.bytes());
  EXPECT_EQ(reading.stats.missing_blocks, 1u);
  EXPECT_EQ(reading.collected.gaps, 1);

  // Two logs one behind the other: the second header is damage, its blocks come earlier in sequence and are refused.
  const std::string twice = small_log() + small_log();
  const Reading doubled = read_bytes(file, twice);
  EXPECT_EQ(doubled.stats.blocks, 5u);
  EXPECT_GT(doubled.stats.damaged_bytes, 0u);
}

TEST(LogReader, UnknownRecordsAreSkippedAndCounted) {
  TemporaryFile file;
  std::string log = LogBuilder().bytes();
  // One section of kind 99, thread 1, 3 records, 2 bytes; then a mark of thread 1 as a known section would follow.
  const std::uint8_t payload[] = {99, 1, 3, 2, 0xaa, 0xbb};
  wire::BlockHeader header{wire::kBlockMagic, 0, sizeof payload, 3, wire::crc32c(payload, sizeof payload), 0};
  header.header_crc = wire::crc32c(&header, offsetof(wire::BlockHeader, header_crc));
  log.append(reinterpret_cast<const char*>(&header), sizeof header);
  log.append(reinterpret_cast<const char*>(payload), sizeof payload);
  const Reading reading = read_bytes(file, log);
  EXPECT_EQ(reading.stats.unknown_records, 3u);
  EXPECT_EQ(reading.stats.damaged_bytes, 0u);
}

TEST(LogReader, MalformedContentWithARightChecksumIsDamage) {
  TemporaryFile file;
  std::string log = LogBuilder().bytes();
  const std::uint8_t payload[] = {1, 1, 200, 1, 127};  // says 200 records in more bytes than there are
  wire::BlockHeader header{wire::kBlockMagic, 0, sizeof payload, 200, wire::crc32c(payload, sizeof payload), 0};
  header.header_crc = wire::crc32c(&header, offsetof(wire::BlockHeader, header_crc));
  log.append(reinterpret_cast<const char*>(&header), sizeof header);
  log.append(reinterpret_cast<const char*>(payload), sizeof payload);
  const Reading reading = read_bytes(file, log);
  EXPECT_EQ(reading.stats.damaged_bytes, sizeof header + sizeof payload);
  EXPECT_EQ(reading.collected.items.size(), 0u);
  EXPECT_EQ(reading.collected.gaps, 1);
}

TEST(LogReader, RefusesWhatItCannotRead) {
  TemporaryFile file;
  EXPECT_EQ(LogReader::open(file.holding("")).error().code, ErrorCode::kCorruptInput);
  EXPECT_EQ(LogReader::open(file.holding(std::string(100, 'x'))).error().code, ErrorCode::kCorruptInput);
  EXPECT_EQ(LogReader::open("/nonexistent/log").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(LogReader::open(testing::TempDir()).error().code, ErrorCode::kCorruptInput);

  wire::FileHeader newer{};
  wire::seal_file_header(&newer);
  newer.version = wire::kWireVersion + 1;
  newer.crc = wire::crc32c(&newer, offsetof(wire::FileHeader, crc));
  const auto error = LogReader::open(file.holding({reinterpret_cast<const char*>(&newer), sizeof newer})).error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_NE(error.message.find("newer llmprof"), std::string::npos);
  EXPECT_EQ(error.hint, "update llmprof");
}

TEST(LogReader, StopsWhenAsked) {
  TemporaryFile file;
  const auto reader = LogReader::open(file.holding(small_log()));
  Collected collected;
  const auto stats = reader->read(collected, [](const base::ProgressUpdate&) { return false; });
  EXPECT_EQ(stats.error().code, ErrorCode::kInterrupted);
}

TEST(CheckLog, SaysWhatALogHolds) {
  TemporaryFile file;
  const auto check = check_log(file.holding(small_log()));
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->whole());
  EXPECT_TRUE(check->ended);
  EXPECT_EQ(check->pid, 4242);
  EXPECT_EQ(check->version, wire::kWireVersion);
  EXPECT_EQ(check->first_ns, 1'000'200);
  EXPECT_EQ(check->last_ns, 1'003'000);
  EXPECT_EQ(check->lost_names, 0);
  const std::vector<std::pair<std::string, std::int64_t>> expected{
      {"range", 43}, {"gemm", 1}, {"loss", 1}, {"thread", 1}, {"process", 2}, {"domain", 1}, {"category", 1}};
  EXPECT_EQ(check->records, expected);
  ASSERT_EQ(check->losses.size(), 1u);
  EXPECT_EQ(check->losses[0].loss, trace::Loss::kBufferFull);
  EXPECT_EQ(check->losses[0].count, 17);
  EXPECT_TRUE(is_log(file.holding(small_log())));
  EXPECT_FALSE(is_log(file.holding("PAR1")));
}

TEST(CheckLog, MissesDefinitionsOfGpuWork) {
  LogBuilder log;
  CudaLogBuilder cuda(log);
  cuda.kernel({.begin_ns = 2'000, .end_ns = 3'000, .shape = cuda.kernel_shape("known")});
  cuda.kernel({.begin_ns = 4'000, .end_ns = 5'000, .shape = 99});
  cuda.launch(1, {.begin_ns = 1'000, .end_ns = 1'500, .stack = cuda.stack("inner", cuda.stack("outer"))});
  TemporaryFile file;
  const auto check = check_log(file.holding(log.bytes()));
  ASSERT_TRUE(check);
  EXPECT_EQ(check->lost_names, 0);
  EXPECT_EQ(check->lost_definitions, 1);
  EXPECT_EQ(check->first_ns, 1'000);
  EXPECT_EQ(check->last_ns, 5'000);
  const std::vector<std::pair<std::string, std::int64_t>> expected{
      {"frame", 2}, {"stack", 2}, {"launch", 1}, {"kernel_shape", 1}, {"kernel", 2}};
  EXPECT_EQ(check->records, expected);
}

// Whatever part of a log is there when it is looked at, and however often: in the end everything was handed out once,
// in order, and nothing that the collector may still take back was.
TEST(FollowLog, AGrowingLogIsReadOnce) {
  const std::string bytes = small_log();
  TemporaryFile file;
  Collected whole;
  const auto stats = LogReader::open(file.holding(bytes))->read(whole, base::no_progress);
  ASSERT_TRUE(stats);
  for (std::size_t first = sizeof(wire::FileHeader); first <= bytes.size(); first += 7) {
    Collected part;
    LogPosition position;
    const auto never = [] { return false; };
    for (std::size_t size = first; size < bytes.size(); size += 131) {
      ASSERT_TRUE(follow_log(file.holding(bytes.substr(0, size)), position, part, never));
      EXPECT_LE(position.offset, size);
    }
    ASSERT_TRUE(follow_log(file.holding(bytes), position, part, never));
    EXPECT_LT(part.items.size(), whole.items.size());  // the last block is kept back
    ASSERT_TRUE(LogReader::open(file.holding(bytes))->read_rest(position, part, base::no_progress));
    EXPECT_EQ(part.items, whole.items);
    EXPECT_EQ(part.gaps, 0);
    EXPECT_EQ(position.stats.bytes, stats->bytes);
    EXPECT_EQ(position.stats.blocks, stats->blocks);
    EXPECT_EQ(position.stats.records, stats->records);
    EXPECT_EQ(position.stats.torn_bytes, 0u);
  }
}

}  // namespace
}  // namespace llmprof::record
