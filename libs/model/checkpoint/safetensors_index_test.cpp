#include "model/checkpoint/tensor_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof::model {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto index = parse_safetensors_index(text, "f");
  return index ? "accepted" : index.error().message;
}

TEST(SafetensorsIndex, TensorsAndTheirFiles) {
  const auto index = parse_safetensors_index(
      R"({"metadata": {"total_size": 100, "total_parameters": 50, "x": [1, {"y": null}]}, "extra": [[1]],
          "weight_map": {"a.weight": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})",
      "f");
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->total_bytes, 100U);
  EXPECT_EQ(index->file_of.at("a.weight"), "model-00001-of-00002.safetensors");
  EXPECT_EQ(index->file_of.size(), 2U);
  EXPECT_EQ(parse_safetensors_index(R"({"metadata":{"total_size":1.2e3},"weight_map":{"a":"b"}})", "f")->total_bytes,
            1200U);
  EXPECT_EQ(parse_safetensors_index(R"({"metadata":{"total_size":-1},"weight_map":{"a":"b"}})", "f")->total_bytes, 0U);
}

TEST(SafetensorsIndex, LeadsNowhereElse) {
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "..", ".", "", "sub/x.safetensors", ".hidden",
                           "http://host/x", "a\\\\b", "a\\u0000b"}) {
    EXPECT_THAT(error_of(R"({"weight_map":{"t":")" + std::string(name) + "\"}}"), HasSubstr("f: t: \"")) << name;
    EXPECT_THAT(error_of(R"({"weight_map":{"t":")" + std::string(name) + "\"}}"), HasSubstr("is not a plain file name"))
        << name;
  }
  EXPECT_THAT(error_of(R"({"weight_map":{"t":")" + std::string(256, 'x') + "\"}}"),
              HasSubstr("is not a plain file name"));
}

TEST(SafetensorsIndex, BadFilesAreNamed) {
  EXPECT_THAT(error_of(""), HasSubstr("f: byte 1: not valid JSON"));
  EXPECT_THAT(error_of("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("f: not a JSON object"));
  EXPECT_THAT(error_of("1"), HasSubstr("f: not a JSON object"));
  EXPECT_THAT(error_of("\"x\""), HasSubstr("f: not a JSON object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("f: no weight_map"));
  EXPECT_THAT(error_of(R"({"weight_map":{}})"), HasSubstr("f: no weight_map"));
  EXPECT_THAT(error_of(R"({"weight_map":[]})"), HasSubstr("f: no weight_map"));
  EXPECT_THAT(error_of(R"({"weight_map":"x"})"), HasSubstr("f: weight_map: not the name of a file"));
  EXPECT_THAT(error_of(R"({"weight_map":{"a":1}})"), HasSubstr("f: a: not the name of a file"));
  EXPECT_THAT(error_of(R"({"weight_map":{"a":{"b":"c"}}})"), HasSubstr("f: a: not the name of a file"));
  EXPECT_THAT(error_of(R"({"weight_map":{"a":"b","a":"b"}})"), HasSubstr("f: a: duplicate tensor"));
  EXPECT_THAT(error_of("{\"a\":" + std::string(1'000'000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("{\"weight_map\":{\"\xFF\":\"b\"}}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(R"({"metadata":{"total_size":1e999},"weight_map":{"a":"b"}})"), HasSubstr("f: "));
}

}  // namespace
}  // namespace llmprof::model
