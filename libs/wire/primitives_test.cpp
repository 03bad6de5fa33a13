#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "wire/primitives.h"

namespace llmprof::wire {
namespace {

// Lengths follow from 7 bits a byte: 127 = 2^7 - 1 is the last one-byte value, 2^63 needs ceil(64 / 7) = 10 bytes.
TEST(Varint, LengthsAtTheEdges) {
  const std::pair<std::uint64_t, std::size_t> cases[] = {{0, 1},     {127, 1},         {128, 2},   {16383, 2},
                                                         {16384, 3}, {1ull << 63, 10}, {~0ull, 10}};
  for (const auto& [value, length] : cases) {
    std::uint8_t bytes[kMaxVarintBytes];
    const std::uint8_t* end = put_varint(bytes, value);
    EXPECT_EQ(end - bytes, static_cast<std::ptrdiff_t>(length)) << value;
    std::uint64_t back = 1;
    EXPECT_EQ(get_varint(bytes, end, &back), end);
    EXPECT_EQ(back, value);
    for (const std::uint8_t* cut = bytes; cut != end; ++cut) EXPECT_EQ(get_varint(bytes, cut, &back), nullptr);
  }
}

TEST(Varint, RefusesMoreThan64Bits) {
  std::uint8_t bytes[11] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 0};
  std::uint64_t value = 0;
  EXPECT_EQ(get_varint(bytes, bytes + 11, &value), nullptr);  // bit 65 set
  bytes[9] = 0x81;                                            // an eleventh byte announced
  EXPECT_EQ(get_varint(bytes, bytes + 11, &value), nullptr);
}

TEST(Varint, PaddedLengthReadsBack) {
  for (const std::uint32_t value : {0u, 1u, 127u, 128u, 65535u, (1u << 21) - 1}) {
    std::uint8_t bytes[3];
    put_varint3(bytes, value);
    std::uint64_t back = 0;
    EXPECT_EQ(get_varint(bytes, bytes + 3, &back), bytes + 3);
    EXPECT_EQ(back, value);
  }
}

TEST(Zigzag, SmallDifferencesStaySmall) {
  EXPECT_EQ(zigzag(0), 0u);
  EXPECT_EQ(zigzag(static_cast<std::uint64_t>(-1)), 1u);
  EXPECT_EQ(zigzag(1), 2u);
  EXPECT_EQ(zigzag(static_cast<std::uint64_t>(-2)), 3u);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = random();
    EXPECT_EQ(unzigzag(zigzag(value)), value);
  }
}

// Check value from the catalogue of CRC parameters (CRC-32/ISCSI); 32 zero bytes from RFC 3720, appendix B.4.
TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c_by_table("123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  const char zeros[32] = {};
  EXPECT_EQ(crc32c(zeros, sizeof(zeros)), 0x8A9136AAu);
}

TEST(Crc32c, InstructionEqualsTableAtEveryLengthAndAlignment) {
  std::mt19937 random(2);
  std::vector<std::uint8_t> bytes(300);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  for (std::size_t from = 0; from < 8; ++from) {
    for (std::size_t size = 0; size + from < bytes.size(); ++size) {
      ASSERT_EQ(crc32c(&bytes[from], size), crc32c_by_table(&bytes[from], size));
    }
  }
}

}  // namespace
}  // namespace llmprof::wire
