// A small log against every truncation, every single-bit flip, and made-up payloads: no wrong record is accepted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "wire/decode.h"
#include "wire/encode.h"

namespace llmprof::wire {
namespace {

using Log = std::vector<std::uint8_t>;
constexpr std::size_t kBlocks = 5;

Record mark(std::uint64_t ts_ns) {
  Record record;
  std::memset(static_cast<void*>(&record), 0, sizeof(record));
  record.kind = RecordKind::kRange;
  record.range.ts_ns = ts_ns;
  record.range.op = RangeOp::kMark;
  record.range.name = 1;
  return record;
}

// A header and five blocks; block b holds the marks 1000 b + 0 … 1000 b + 9.
Log small_log(std::vector<std::size_t>* block_begins = nullptr) {
  FileHeader header{};
  header.pid = 77;
  seal_file_header(&header);
  Log log(sizeof(header));
  std::memcpy(log.data(), &header, sizeof(header));
  std::uint8_t memory[4096];
  BlockBuilder builder(memory, sizeof(memory));
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    Record records[10];
    const Record* selected[10];
    for (std::uint64_t i = 0; i < 10; ++i) {
      records[i] = mark(1000 * b + i);
      selected[i] = &records[i];
    }
    if (b == 0) builder.add_string(1, "step", 4);
    builder.add_records(RecordKind::kRange, 3, selected, 10);
    builder.finish(b);
    if (block_begins != nullptr) block_begins->push_back(log.size());
    log.insert(log.end(), builder.data(), builder.data() + builder.size());
    builder.clear();
  }
  return log;
}

struct Reading {
  HeaderStatus header = HeaderStatus::kTooShort;
  std::vector<std::uint32_t> sequences;
  std::uint64_t damaged_bytes = 0, torn_bytes = 0;
  std::uint32_t missing_blocks = 0;
  std::size_t wrong_records = 0;
};

void check_block(const Block& block, Reading* reading) {
  std::vector<Record> records(kMaxSectionRecords);
  SectionReader sections(block);
  Section section;
  std::uint64_t seen = 0;
  while (sections.next(&section)) {
    if (section.kind == 0) continue;
    if (!is_known(section) || !decode_records(section, records.data())) ++reading->wrong_records;
    for (std::uint32_t i = 0; i < section.count; ++i, ++seen) {
      const Record expected = mark(1000ull * block.sequence + seen);
      if (std::memcmp(&expected, &records[i], sizeof(Record)) != 0) ++reading->wrong_records;
    }
  }
  if (!sections.complete() || seen != 10) ++reading->wrong_records;
}

Reading read(const Log& log) {
  Reading reading;
  FileHeader header;
  reading.header = read_file_header({log.data(), log.size()}, &header);
  BlockReader blocks({log.data(), log.size()}, sizeof(FileHeader));
  for (Step step = blocks.next(); step.kind != StepKind::kEnd; step = blocks.next()) {
    if (step.kind == StepKind::kDamage) reading.damaged_bytes += step.bytes;
    if (step.kind == StepKind::kTornTail) reading.torn_bytes += step.bytes;
    if (step.kind != StepKind::kBlock) continue;
    reading.missing_blocks += step.missing_blocks;
    reading.sequences.push_back(step.block.sequence);
    check_block(step.block, &reading);
  }
  return reading;
}

TEST(Damage, WholeLogReadsClean) {
  const Reading reading = read(small_log());
  EXPECT_EQ(reading.header, HeaderStatus::kOk);
  EXPECT_EQ(reading.sequences.size(), kBlocks);
  EXPECT_EQ(reading.damaged_bytes + reading.torn_bytes + reading.missing_blocks + reading.wrong_records, 0u);
}

TEST(Damage, EveryTruncationGivesTheExactPrefix) {
  std::vector<std::size_t> begins;
  const Log whole = small_log(&begins);
  begins.push_back(whole.size());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Reading reading = read(Log(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    std::size_t complete = 0;
    while (complete < kBlocks && begins[complete + 1] <= size) ++complete;
    ASSERT_EQ(reading.sequences.size(), complete) << size;
    ASSERT_EQ(reading.wrong_records + reading.damaged_bytes, 0u) << size;
    ASSERT_EQ(reading.torn_bytes, size >= sizeof(FileHeader) ? size - begins[complete] : 0) << size;
    ASSERT_EQ(reading.header == HeaderStatus::kOk, size >= sizeof(FileHeader));
  }
}

TEST(Damage, EveryBitFlipLosesOneBlockAndSaysSo) {
  std::vector<std::size_t> begins;
  const Log whole = small_log(&begins);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Log log = whole;
    log[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const Reading reading = read(log);
    ASSERT_EQ(reading.wrong_records, 0u) << "bit " << bit;
    if (bit / 8 < sizeof(FileHeader)) {
      ASSERT_NE(reading.header, HeaderStatus::kOk) << "bit " << bit;
      ASSERT_EQ(reading.sequences.size(), kBlocks);
    } else {
      ASSERT_EQ(reading.sequences.size(), kBlocks - 1) << "bit " << bit;
      ASSERT_GT(reading.damaged_bytes + reading.torn_bytes, 0u) << "bit " << bit;
      const bool last = bit / 8 >= begins[kBlocks - 1];
      ASSERT_EQ(reading.missing_blocks, last ? 0u : 1u) << "bit " << bit;
    }
  }
}

TEST(Damage, RepeatedAndReorderedBlocksAreNotTakenTwice) {
  std::vector<std::size_t> begins;
  const Log whole = small_log(&begins);
  Log twice = whole;
  twice.insert(twice.end(), whole.begin(), whole.end());  // two logs concatenated
  EXPECT_EQ(read(twice).sequences.size(), kBlocks);
  EXPECT_EQ(read(twice).damaged_bytes, whole.size());
  Log swapped(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(begins[1]));  // 0, 2, 1, 3, 4
  const auto append = [&](std::size_t b) {
    const std::size_t end = b + 1 < kBlocks ? begins[b + 1] : whole.size();
    swapped.insert(swapped.end(), whole.begin() + static_cast<std::ptrdiff_t>(begins[b]),
                   whole.begin() + static_cast<std::ptrdiff_t>(end));
  };
  for (const std::size_t b : {2, 1, 3, 4}) append(b);
  EXPECT_EQ(read(swapped).sequences, (std::vector<std::uint32_t>{0, 2, 3, 4}));
}

TEST(Damage, NewerVersionIsNamed) {
  FileHeader header{};
  seal_file_header(&header);
  header.version = kWireVersion + 1;
  header.crc = crc32c(&header, offsetof(FileHeader, crc));
  Log log(sizeof(header));
  std::memcpy(log.data(), &header, sizeof(header));
  EXPECT_EQ(read(log).header, HeaderStatus::kNewer);
}

// Payloads that pass the checksum but were never written by the encoder: bounds hold (run under ASan).
TEST(Damage, ForgedPayloadsStayInBounds) {
  std::mt19937_64 random(5);
  std::vector<Record> records(kMaxSectionRecords);
  std::size_t accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    Log payload(random() % 64);  // exact size on the heap: one byte too far is an ASan report
    for (auto& byte : payload) byte = static_cast<std::uint8_t>(random() >> (random() % 57));
    SectionReader sections(
        Block{0, static_cast<std::uint32_t>(random() % kMaxBlockRecords), {payload.data(), payload.size()}});
    Section section;
    StringDefinition definition;
    while (sections.next(&section)) {
      ASSERT_LE(section.count, kMaxSectionRecords);
      StringReader strings(section);
      while (strings.next(&definition)) accepted += definition.length;
      if (is_known(section) && decode_records(section, records.data())) ++accepted;
    }
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace llmprof::wire
