#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "wire/decode.h"
#include "wire/encode.h"

namespace llmprof::wire {
namespace {

// Times around which a column of differences might wrap: 2^47 and 2^53 (the last integer of a double) with their
// neighbours, the last signed number, the last of all; and the largest steps there are, up and down.
TEST(Times, AnyStepBetweenAnyTimesSurvives) {
  const std::vector<std::uint64_t> times{0,
                                         (1ull << 47) - 1,
                                         1ull << 47,
                                         (1ull << 53) - 1,
                                         1ull << 53,
                                         0,
                                         (1ull << 53) + 1,
                                         (1ull << 63) - 1,
                                         1ull << 63,
                                         0,
                                         ~0ull,
                                         0,
                                         (1ull << 63) - 1,
                                         ~0ull,
                                         1};
  std::vector<Record> records(times.size());
  std::vector<const Record*> pointers;
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::memset(static_cast<void*>(&records[i]), 0, sizeof(Record));
    records[i].kind = RecordKind::kGemm;
    records[i].gemm.begin_ns = times[i];
    records[i].gemm.end_ns = times[times.size() - 1 - i];
    pointers.push_back(&records[i]);
  }
  std::uint8_t memory[4096];
  BlockBuilder block(memory, sizeof(memory));
  ASSERT_TRUE(block.add_records(RecordKind::kGemm, 1, pointers.data(), pointers.size()));
  block.finish(0);
  const Step step = BlockReader({block.data(), block.size()}, 0).next();
  SectionReader sections(step.block);
  Section section;
  ASSERT_TRUE(sections.next(&section));
  std::vector<Record> decoded(kMaxSectionRecords);
  ASSERT_TRUE(decode_records(section, decoded.data()));
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(decoded[i].gemm.begin_ns, records[i].gemm.begin_ns) << i;
    EXPECT_EQ(decoded[i].gemm.end_ns, records[i].gemm.end_ns) << i;
  }
}

}  // namespace
}  // namespace llmprof::wire
