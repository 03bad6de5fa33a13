#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "wire/decode.h"
#include "wire/encode.h"

namespace llmprof::wire {
namespace {

std::vector<const Record*> pointers(const std::vector<Record>& records) {
  std::vector<const Record*> result;
  for (const Record& record : records) result.push_back(&record);
  return result;
}

// Values as they occur: constant columns, small steps, and full-range noise.
std::uint64_t random_value(std::mt19937_64& random, std::size_t style, std::size_t i) {
  switch (style % 4) {
    case 0:
      return 7;
    case 1:
      return 1000000 + 37 * i;
    case 2:
      return random() >> (random() % 64);
    default:
      return random();
  }
}

std::vector<Record> random_records(std::mt19937_64& random, RecordKind kind, std::size_t count) {
  std::vector<Record> records(count);
  const FieldList list = fields_of(static_cast<std::uint64_t>(kind));
  std::memset(static_cast<void*>(records.data()), 0, count * sizeof(Record));
  for (std::size_t f = 0; f < list.count; ++f) {
    const std::size_t style = random();
    for (std::size_t i = 0; i < count; ++i) {
      records[i].kind = kind;
      const unsigned bits = 8u * list.fields[f].width;
      const std::uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
      store_field(records[i], list.fields[f], random_value(random, style, i) & mask);
    }
  }
  return records;
}

TEST(RoundTrip, RandomRecordsOfEveryKind) {
  std::mt19937_64 random(3);
  std::vector<std::uint8_t> memory(sizeof(BlockHeader) + kMaxPayloadBytes);
  std::vector<Record> decoded(kMaxSectionRecords);
  for (int round = 0; round < 400; ++round) {
    const auto kind = static_cast<RecordKind>(1 + random() % (kRecordKinds - 1));
    const std::vector<Record> records = random_records(random, kind, 1 + random() % 200);
    BlockBuilder builder(memory.data(), memory.size());
    const auto thread = static_cast<std::uint32_t>(random());
    ASSERT_TRUE(builder.add_records(kind, thread, pointers(records).data(), records.size()));
    builder.finish(0);
    BlockReader blocks({builder.data(), builder.size()}, 0);
    const Step step = blocks.next();
    ASSERT_EQ(step.kind, StepKind::kBlock);
    SectionReader sections(step.block);
    Section section;
    ASSERT_TRUE(sections.next(&section));
    EXPECT_EQ(section.kind, static_cast<std::uint64_t>(kind));
    EXPECT_EQ(section.thread, thread);
    ASSERT_EQ(section.count, records.size());
    ASSERT_TRUE(decode_records(section, decoded.data()));
    for (std::size_t i = 0; i < records.size(); ++i) {
      ASSERT_EQ(std::memcmp(&records[i], &decoded[i], sizeof(Record)), 0) << "kind " << int(kind) << " record " << i;
    }
    EXPECT_FALSE(sections.next(&section));
    EXPECT_TRUE(sections.complete());
    EXPECT_EQ(blocks.next().kind, StepKind::kEnd);
  }
}

// Every byte of a record that a field covers is covered once, so no field can be forgotten or overlap another.
TEST(Fields, DoNotOverlapAndCoverEachRecord) {
  const std::size_t payload_bytes[kRecordKinds] = {0,
                                                   8 + 8 + 8 + 4 + 4 + 4 + 1 + 1 + 2,              // range
                                                   8 + 8 + 3 * 8 + 4 + 4 + 4 + 1 + 1 + 1 + 1,      // gemm
                                                   8 + 8 + 8,                                      // clock sync
                                                   8 + 8 + 8 + 2,                                  // loss
                                                   8 + 8 + 4 + 1,                                  // thread
                                                   4 * 8 + 5 * 4 + 1,                              // process
                                                   4 + 4,                                          // domain
                                                   4 + 4 + 4,                                      // category
                                                   8 + 4 + 1,                                      // library
                                                   6 * 8 + 4 + 4,                                  // usage
                                                   6 * 8 + 4,                                      // io
                                                   4 * 4 + 1 + 8,                                  // frame
                                                   3 * 4,                                          // stack
                                                   2 * 8 + 3 * 4 + 1,                              // sample
                                                   6 * 8,                                          // cost
                                                   8 + 4,                                          // segment
                                                   3 * 8 + 4 * 4,                                  // device
                                                   8 + 8 + 3 * 4 + 1 + 1 + 2,                      // launch
                                                   2 * 4 + 3 * 4 + 3 * 2 + 2 + 2 * 4 + 4 + 3 * 2,  // kernel shape
                                                   3 * 8 + 5 * 4 + 2,                              // kernel
                                                   4 * 8 + 3 * 4 + 2 + 1 + 1,                      // copy
                                                   2 * 8 + 4 * 4 + 2,                              // graph launch
                                                   3 * 8 + 3 * 4 + 1,                              // graph node
                                                   10 * 4 + 3,                                     // gemm shape
                                                   2 * 8 + 3 * 8 + 2 * 4,                          // gpu gemm
                                                   3 * 8 + 4 + 2 + 1 + 1,                          // device memory
                                                   2 * 8 + 3 * 4 + 1,                              // api
                                                   2 * 8 + 4,                                      // gap
                                                   2 * 8 + 3 * 4,                                  // telemetry
                                                   2 * 8 + 2 * 4,                                  // telemetry device
                                                   8 + 2 * 4,                                      // note
                                                   3 * 8 + 3 * 4 + 2 + 1 + 1 + 1,                  // counter window
                                                   2 * 8 + 2 * 4,                                  // counter
                                                   4 * 8 + 4 * 4 + 2 + 1,                          // stall
                                                   2 * 8 + 2 * 4 + 1,                              // thread time
                                                   4 * 8 + 3 * 4};                                 // CPU group
  for (std::size_t kind = 1; kind < kRecordKinds; ++kind) {
    bool used[sizeof(Record)] = {};
    std::size_t covered = 0;
    const FieldList list = fields_of(kind);
    for (std::size_t f = 0; f < list.count; ++f) {
      for (std::size_t b = 0; b < list.fields[f].width; ++b) {
        bool& byte = used[list.fields[f].offset + b];
        EXPECT_FALSE(byte);
        byte = true;
        ++covered;
      }
    }
    EXPECT_EQ(covered, payload_bytes[kind]) << kind;
  }
}

// An end is stored as a length: two launches of 7 ns, 1000 ns apart, the first at 1000.
TEST(Columns, EndsBesideTheirBegins) {
  std::vector<Record> records(2);
  std::memset(static_cast<void*>(records.data()), 0, 2 * sizeof(Record));
  for (std::size_t i = 0; i < 2; ++i) {
    records[i].kind = RecordKind::kGap;
    records[i].gap = {1000 * (i + 1), 1000 * (i + 1) + 7, 3};
  }
  std::uint8_t memory[4096];
  BlockBuilder builder(memory, sizeof(memory));
  const std::vector<const Record*> both = pointers(records);
  ASSERT_TRUE(builder.add_records(RecordKind::kGap, 0, both.data(), 2));
  const std::uint8_t body[] = {2, 0xd0, 0x0f, 0xd0, 0x0f,  // delta: 1000 twice, zigzag 2000
                               3, 14,   14,                // beside: 7 twice, zigzag 14
                               0, 3};                      // constant: name 3
  ASSERT_EQ(builder.size(), sizeof(BlockHeader) + 6 + sizeof(body));
  EXPECT_EQ(std::memcmp(memory + sizeof(BlockHeader) + 6, body, sizeof(body)), 0);
}

TEST(RoundTrip, NamesAreBytes) {
  std::uint8_t memory[1024];
  BlockBuilder builder(memory, sizeof(memory));
  const std::string odd("a\0b\xff\n</script>", 15);
  ASSERT_TRUE(builder.add_string(9, odd.data(), odd.size()));
  ASSERT_TRUE(builder.add_string(0xfffffffe, "", 0));
  builder.finish(4);
  BlockReader blocks({builder.data(), builder.size()}, 0);
  const Step step = blocks.next();
  ASSERT_EQ(step.kind, StepKind::kBlock);
  EXPECT_EQ(step.missing_blocks, 4u);
  SectionReader sections(step.block);
  Section section;
  StringDefinition definition;
  ASSERT_TRUE(sections.next(&section));
  StringReader first(section);
  ASSERT_TRUE(first.next(&definition));
  EXPECT_EQ(definition.id, 9u);
  EXPECT_EQ(std::string(definition.text, definition.length), odd);
  EXPECT_FALSE(first.next(&definition));
  EXPECT_TRUE(first.complete());
  ASSERT_TRUE(sections.next(&section));
  StringReader second(section);
  ASSERT_TRUE(second.next(&definition));
  EXPECT_EQ(definition.length, 0u);
  EXPECT_FALSE(sections.next(&section));
  EXPECT_TRUE(sections.complete());
}

TEST(BlockBuilder, RefusesWhatDoesNotFit) {
  std::uint8_t memory[sizeof(BlockHeader) + 100];
  BlockBuilder builder(memory, sizeof(memory));
  const std::string name(100, 'x');
  EXPECT_FALSE(builder.add_string(1, name.data(), name.size()));
  EXPECT_TRUE(builder.empty());
  EXPECT_TRUE(builder.add_string(1, name.data(), 30));
}

// A kind of the future is skipped by its length; a column of the future at the end of a section is ignored.
TEST(Compatibility, UnknownKindAndExtraColumn) {
  std::uint8_t body[] = {42, 0, 3, 2, 0xAA, 0xBB,                // kind 42, thread 0, 3 records, 2 bytes
                         7,  0, 1, 6, 0,    5,    0, 6, 0, 99};  // kDomain: domain 5, name 6, and a third column
  Block block{0, 4, {body, sizeof(body)}};
  SectionReader sections(block);
  Section section;
  ASSERT_TRUE(sections.next(&section));
  EXPECT_FALSE(is_known(section));
  EXPECT_EQ(section.count, 3u);
  ASSERT_TRUE(sections.next(&section));
  Record record;
  ASSERT_TRUE(decode_records(section, &record));
  EXPECT_EQ(record.domain.domain, 5u);
  EXPECT_EQ(record.domain.name, 6u);
  EXPECT_FALSE(sections.next(&section));
  EXPECT_TRUE(sections.complete());
}

TEST(Compatibility, MissingColumnReadsAsZero) {
  std::uint8_t body[] = {7, 0, 1, 2, 0, 5};  // kDomain with the first column only
  SectionReader sections(Block{0, 1, {body, sizeof(body)}});
  Section section;
  ASSERT_TRUE(sections.next(&section));
  Record record;
  ASSERT_TRUE(decode_records(section, &record));
  EXPECT_EQ(record.domain.domain, 5u);
  EXPECT_EQ(record.domain.name, 0u);
}

}  // namespace
}  // namespace llmprof::wire
