#include "model/checkpoint/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "model/config.h"
#include "model/testing/gguf_builder.h"

namespace llmprof::model {
namespace {

using testing::gguf_text;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::le;

class GgufTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  Result<GgufHeader> read(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    LLMPROF_LET(const base::RegularFile file, base::RegularFile::open(path_));
    return read_gguf_header(file);
  }
  std::string error_of(const std::string& bytes) const {
    auto header = read(bytes);
    return header ? "accepted" : header.error().message;
  }
  std::string error_of(const GgufBuilder& builder) const { return error_of(builder.file()); }

  std::string path_ = std::filesystem::temp_directory_path() / ("llmprof_" + std::to_string(::getpid()) + ".gguf");
};

GgufBuilder small() {
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  builder.u32("llama.block_count", 2);
  builder.numbers("llama.attention.head_count_kv", {4, -1});
  builder.texts("tokenizer.ggml.tokens", 1000);
  builder.tensor("token_embd.weight", {256, 10}, 12);  // Q4_K: 10 blocks of 144
  builder.tensor("output_norm.weight", {256});
  return builder;
}

TEST_F(GgufTest, MetadataAndTensorsAreRead) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufBuilder builder = small();
    builder.version = version;
    auto header = read(builder.file());
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(std::get<std::string>(header->metadata.at("general.architecture")), "llama");
    EXPECT_EQ(std::get<std::int64_t>(header->metadata.at("llama.block_count")), 2);
    EXPECT_THAT(std::get<GgufArray>(header->metadata.at("llama.attention.head_count_kv")).numbers,
                ::testing::ElementsAre(4, -1));
    EXPECT_EQ(std::get<GgufArray>(header->metadata.at("tokenizer.ggml.tokens")).count, 1000U);
    ASSERT_EQ(header->tensors.size(), 2U);
    EXPECT_EQ(header->tensors[0].values, 2560U);
    EXPECT_EQ(header->tensors[0].bytes, 1440U);
    EXPECT_EQ(header->tensors[0].type->name, "Q4_K");
    EXPECT_EQ(header->tensors[1].offset, 1440U);  // 45 x 32: no padding
    EXPECT_EQ(header->tensors[1].bytes, 1024U);
    EXPECT_EQ(header->beyond_bytes, 0U);
  }
}

TEST_F(GgufTest, EveryKindOfValueIsRead) {
  GgufBuilder builder;
  builder.raw_key("u8", 0, "\xff");
  builder.raw_key("i8", 1, "\xff");
  builder.raw_key("u16", 2, "\xff\xff");
  builder.raw_key("i16", 3, "\xfe\xff");
  builder.raw_key("i32", 5, le(std::int32_t{-7}));
  builder.raw_key("f32", 6, le(1.5F));
  builder.raw_key("bool", 7, "\x01");
  builder.raw_key("u64", 10, le(UINT64_MAX));
  builder.raw_key("i64", 11, le(INT64_MIN));
  builder.raw_key("f64", 12, le(0.25));
  builder.raw_key("long", 8, gguf_text(std::string((1 << 20) + 1, 'x')));
  builder.raw_key("after", 4, le(std::uint32_t{9}));
  auto header = read(builder.file());
  ASSERT_TRUE(header) << header.error().message;
  const auto& values = header->metadata;
  EXPECT_EQ(std::get<std::int64_t>(values.at("u8")), 255);
  EXPECT_EQ(std::get<std::int64_t>(values.at("i8")), -1);
  EXPECT_EQ(std::get<std::int64_t>(values.at("u16")), 65535);
  EXPECT_EQ(std::get<std::int64_t>(values.at("i16")), -2);
  EXPECT_EQ(std::get<std::int64_t>(values.at("i32")), -7);
  EXPECT_EQ(std::get<double>(values.at("f32")), 1.5);
  EXPECT_TRUE(std::get<bool>(values.at("bool")));
  EXPECT_EQ(std::get<double>(values.at("u64")), 0x1p64);  // does not wrap
  EXPECT_EQ(std::get<std::int64_t>(values.at("i64")), INT64_MIN);
  EXPECT_EQ(std::get<double>(values.at("f64")), 0.25);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(values.at("long")));  // passed over, not kept
  EXPECT_EQ(std::get<std::int64_t>(values.at("after")), 9);
}

struct Case {
  const char* rule;
  std::function<void(GgufBuilder&)> make;
};

// The kinds of bad files that llama.cpp keeps as tests, and a few more: one broken rule each.
const Case kBad[] = {
    {"byte 8: GGUF version 0 is not read", [](auto& b) { b.version = 0; }},
    {"byte 8: GGUF version 1 is not read", [](auto& b) { b.version = 1; }},
    {"byte 8: GGUF version 4, the newest known is 3", [](auto& b) { b.version = 4; }},
    {"GGUF version 3 in big-endian order", [](auto& b) { b.version = 3U << 24; }},
    {"18446744073709551615 tensors, at most 100000", [](auto& b) { b.announced_tensors = UINT64_MAX; }},
    {"100001 tensors, at most 100000", [](auto& b) { b.announced_tensors = 100'001; }},
    {"18446744073709551615 keys, at most 100000", [](auto& b) { b.announced_keys = UINT64_MAX; }},
    {"key of 18446744073709551615 bytes", [](auto& b) { b.keys += le(UINT64_MAX), ++b.key_count; }},
    {"key of 65537 bytes, at most 65536", [](auto& b) { b.u32(std::string(65537, 'k'), 1); }},
    {"empty key", [](auto& b) { b.u32("", 1); }},
    {"duplicate key general.architecture", [](auto& b) { b.text("general.architecture", "x"); }},
    {"x: type 13 of a value is not known", [](auto& b) { b.raw_key("x", 13, "abcd"); }},
    {"18446744073709551615 bytes are announced, the file ends after",
     [](auto& b) { b.raw_key("x", 8, le(UINT64_MAX)); }},
    {"x: type 13 of an array is not known", [](auto& b) { b.raw_key("x", 9, le(13U) + le(std::uint64_t{1})); }},
    {"x: array of arrays", [](auto& b) { b.raw_key("x", 9, le(9U) + le(std::uint64_t{1})); }},
    {"x: array of 16777217, at most 16777216",
     [](auto& b) { b.raw_key("x", 9, le(0U) + le(std::uint64_t{16777217})); }},
    {"8388608 bytes are announced, the file ends after",
     [](auto& b) { b.raw_key("x", 9, le(12U) + le(std::uint64_t{1 << 20})); }},
    {"general.alignment: 13 is not a power of two", [](auto& b) { b.u32("general.alignment", 13); }},
    {"general.alignment: 0 is not a power of two", [](auto& b) { b.u32("general.alignment", 0); }},
    {"general.alignment: not a 32-bit number", [](auto& b) { b.raw_key("general.alignment", 5, le(32)); }},
    {"tensor name of 64 bytes, 1 to 63", [](auto& b) { b.tensor(std::string(64, 'n'), {4}); }},
    {"tensor name of 0 bytes", [](auto& b) { b.tensor("", {4}); }},
    {"tensor t: 0 dimensions", [](auto& b) { b.tensor("t", {}); }},
    {"tensor t: 5 dimensions",
     [](auto& b) {
       b.tensor("t", {1, 1, 1, 1, 1});
     }},
    {"tensor t: 4294967295 dimensions",
     [](auto& b) { b.tensors += gguf_text("t") + le(UINT32_MAX), ++b.tensor_count; }},
    {"tensor t: size -1 is negative", [](auto& b) { b.raw_tensor("t", {UINT64_MAX}, 0, 2464); }},
    {"tensor t: product of its sizes overflows",
     [](auto& b) {
       b.raw_tensor("t", {1ULL << 32, 1ULL << 32}, 0, 2464);
     }},
    {"tensor t: size in bytes overflows", [](auto& b) { b.raw_tensor("t", {1ULL << 62}, 27, 2464); }},
    {"tensor t: rows of 255 values are not whole blocks of Q4_K: 256 each",
     [](auto& b) {
       b.tensor("t", {255, 256}, 12);
     }},
    {"tensor t: type 4 is not known", [](auto& b) { b.tensor("t", {32}, 4); }},
    {"tensor t: type 4294967295 is not known", [](auto& b) { b.tensor("t", {32}, UINT32_MAX); }},
    {"tensor t: offset 2465, expected 2464 (alignment 32)", [](auto& b) { b.raw_tensor("t", {1}, 0, 2465); }},
    {"tensor t: offset 0, expected 2464", [](auto& b) { b.raw_tensor("t", {1}, 0, 0); }},  // would overlap the first
    {"tensor output_norm.weight: duplicate name", [](auto& b) { b.tensor("output_norm.weight", {4}); }},
    {"tensor t: ends at byte 2468 of the data, the file has 2464", [](auto& b) { b.raw_tensor("t", {1}, 0, 2464); }},
    // 2^63 - 1 - 10000 bytes padded to 32: 17 more
    {"tensor u: sum of the sizes overflows",
     [](auto& b) {
       b.raw_tensor("t", {INT64_MAX - 10'000}, 24, 2464);
       b.raw_tensor("u", {INT64_MAX - 10'000}, 24, 2464ULL + INT64_MAX - 10'000 + 17);
     }},
};

TEST_F(GgufTest, EveryBrokenRuleIsNamed) {
  for (const Case& bad : kBad) {
    GgufBuilder builder = small();
    bad.make(builder);
    const std::string found = error_of(builder);
    EXPECT_THAT(found, HasSubstr(bad.rule));
    EXPECT_THAT(found, HasSubstr(path_)) << bad.rule;
  }
}

TEST_F(GgufTest, AFileThatEndsAnywhereIsAnError) {
  const std::string whole = small().file();
  ASSERT_EQ(error_of(whole), "accepted");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += bytes < 200 ? 1 : 37) {
    EXPECT_NE(error_of(whole.substr(0, bytes)), "accepted") << bytes;
  }
}

TEST_F(GgufTest, OtherFilesAreNamed) {
  EXPECT_THAT(error_of(""), HasSubstr("empty, expected a GGUF file"));
  EXPECT_THAT(error_of("G"), HasSubstr("not a GGUF file"));
  EXPECT_THAT(error_of("FUGG" + std::string(60, '\0')), HasSubstr("not a GGUF file"));
  EXPECT_THAT(error_of("lmgg" + std::string(60, '\0')), HasSubstr("this is a GGML file, the format before GGUF"));
  EXPECT_THAT(error_of("PK\x03\x04" + std::string(60, '\0')), HasSubstr("this is a zip archive, expected a GGUF file"));
}

TEST_F(GgufTest, WhatIsAllowedIsAccepted) {
  GgufBuilder none;
  EXPECT_EQ(error_of(none), "accepted");  // no keys, no tensors

  GgufBuilder aligned;  // data without gaps
  aligned.alignment = 1;
  aligned.u32("general.alignment", 1);
  aligned.tensor("a", {3}, 24);
  aligned.tensor("b", {5}, 24);
  auto header = read(aligned.file());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->tensors[1].offset, 3U);

  GgufBuilder empty = small();
  empty.tensor("t", {0, 7});
  header = read(empty.file());
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->empty_tensors, 1U);

  header = read(small().file() + std::string(100, 'x'));
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->beyond_bytes, 100U);

  GgufBuilder last = small();  // padding after the last tensor: there or not
  last.tensor("t", {1});
  EXPECT_EQ(error_of(last), "accepted");
  EXPECT_EQ(error_of(last.file().substr(0, last.file().size() - 28)), "accepted");
  EXPECT_THAT(error_of(last.file().substr(0, last.file().size() - 29)), HasSubstr("tensor t: ends at byte 2468"));
}

// The blocks of ggml-types against the bytes per value that --dtype uses: one fact, written down twice.
TEST(GgmlTypes, BytesPerValueAgreeWithTheNumbers) {
  int compared = 0;
  for (const GgmlType& type : ggml_types()) {
    const std::optional<Number> number = number_of(type.name);
    if (!number || type.name.starts_with("I")) continue;
    EXPECT_DOUBLE_EQ(number->bytes, static_cast<double>(type.bytes) / type.values) << type.name;
    ++compared;
  }
  EXPECT_GE(compared, 15);
  EXPECT_EQ(find_ggml_type(5), nullptr);
  EXPECT_EQ(find_ggml_type(14)->name, "Q6_K");
}

}  // namespace
}  // namespace llmprof::model
