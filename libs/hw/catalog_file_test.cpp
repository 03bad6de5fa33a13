// What a data file must say, and what it is told when it does not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hw/catalog.h"

namespace llmprof::hw {
namespace {

using ::testing::HasSubstr;

std::string file(const std::string& device, const std::string& sources) {
  return R"({"vendor": "V", "sources": {)" + sources + R"(}, "devices": [)" + device + "]}";
}

const char* const kSource = R"("s": {"tag": "spec", "document": "V's sheet", "read_in": "a book"})";
const char* const kHead = R"("name": "V 1", "short": ["v1"], "kind": "gpu", "architecture": "A", )";

std::string device(const std::string& rest) { return "{" + std::string(kHead) + rest + "}"; }

std::string error_of(const std::string& text) {
  const auto parsed = parse_catalog(text, "x.json");
  return parsed ? "" : parsed.error().message;
}

TEST(CatalogFile, ReadsUnitsAndSources) {
  const auto parsed = parse_catalog(
      file(
          device(R"("memory_gib": [16, "s"], "bandwidth_gbs": [300, "s", "shared"], "tflops": {"float16": [65, "s"]})"),
          kSource),
      "x.json");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const DeviceSpec& spec = parsed->at(0);
  EXPECT_EQ(spec.vendor, "V");
  EXPECT_EQ(spec.figure("memory")->value, 16.0 * (1 << 30));
  EXPECT_EQ(spec.figure("bandwidth")->value, 300e9);
  EXPECT_EQ(spec.figure("bandwidth")->note, "shared");
  EXPECT_EQ(spec.figure("cache"), nullptr);
  EXPECT_EQ(spec.peak("float16")->value, 65e12);
  EXPECT_EQ(spec.peak("float16")->source, "V's sheet");
  EXPECT_EQ(spec.peak("float16")->read_in, "a book");
}

TEST(CatalogFile, RefusesNumbersWithoutSource) {
  EXPECT_THAT(error_of(file(device(R"("memory_gib": 16)"), kSource)),
              HasSubstr("V 1: memory_gib: not [value, source]"));
  EXPECT_THAT(error_of(file(device(R"("memory_gib": [16])"), kSource)), HasSubstr("not [value, source]"));
  EXPECT_THAT(error_of(file(device(R"("memory_gib": [16, "t"])"), kSource)), HasSubstr("source t is not among"));
  EXPECT_THAT(error_of(file(device(R"("memory_gib": [16, "s"])"), R"("s": {"tag": "rumour", "document": "x"})")),
              HasSubstr("source s needs a tag"));
  EXPECT_THAT(error_of(file(device(R"("memory_gib": [16, "s"])"), R"("s": {"tag": "spec"})")),
              HasSubstr("source s needs a tag and a document"));
}

TEST(CatalogFile, RefusesNonsense) {
  EXPECT_THAT(error_of("[]"), HasSubstr("x.json: not an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("no list of devices"));
  EXPECT_THAT(error_of("{\"devices\": [3]}"), HasSubstr("a device is not an object"));
  EXPECT_THAT(error_of("{"), HasSubstr("x.json"));
  EXPECT_THAT(error_of(file("{}", kSource)), HasSubstr("needs a name"));
  EXPECT_THAT(error_of(file(device(R"("memory_gib": [0, "s"])"), kSource)), HasSubstr("not a positive number"));
  EXPECT_THAT(error_of(file(device(R"("memory_gib": [-1, "s"])"), kSource)), HasSubstr("not a positive number"));
  EXPECT_THAT(error_of(file(device(R"("tflops": {"fp16_sparse": [1, "s"]})"), kSource)),
              HasSubstr("unknown arithmetic fp16_sparse"));
  EXPECT_THAT(error_of(file(device(R"("tflops": 3)"), kSource)), HasSubstr("tflops is not an object"));
  EXPECT_THAT(error_of(file(device(R"("conflicts": "none")"), kSource)), HasSubstr("conflicts is not a list"));
}

}  // namespace
}  // namespace llmprof::hw
