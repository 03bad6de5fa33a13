#include "base/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace llmprof::base {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& header, std::uint64_t data_bytes) {
  auto entries = parse_safetensors_header(header, data_bytes, "f");
  return entries ? "accepted" : entries.error().message;
}

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "x.safetensors"; }

  void write_raw(std::uint64_t header_length, const std::string& rest) const {
    std::ofstream out(path(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(&header_length), sizeof(header_length));
    out << rest;
  }

  std::string error_of_open() const {
    auto file = RegularFile::open(path());
    if (!file) return file.error().message;
    auto header = read_safetensors_header(*file);
    return header ? "accepted" : header.error().message;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("llmprof_base_safetensors_" + std::to_string(::getpid()));
};

TEST_F(SafetensorsTest, BadLengthsAndFilesAreRejected) {
  EXPECT_THAT(error_of_open(), HasSubstr("No such file"));
  write_raw(0, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 0 is not between"));
  write_raw(1, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 1 is not between"));
  write_raw(100'000'001, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 100000001 is not between"));
  write_raw(1ULL << 63, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 9223372036854775808 is not between"));
  write_raw(3, "{}");
  EXPECT_THAT(error_of_open(), HasSubstr("header length 3 exceeds the file"));
  std::ofstream(path(), std::ios::trunc) << "";
  EXPECT_THAT(error_of_open(), HasSubstr("empty, expected a safetensors file"));
  std::ofstream(path(), std::ios::trunc) << "abc";
  EXPECT_THAT(error_of_open(), HasSubstr("shorter than the 8 bytes"));
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_THAT(error_of_open(), HasSubstr("a directory, not a regular file"));
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(error_of_open(), HasSubstr("a pipe, not a regular file"));
}

TEST_F(SafetensorsTest, OtherFilesAreNamed) {
  std::ofstream(path()) << "PK\x03\x04" << std::string(60, 'x');  // torch.save
  EXPECT_THAT(error_of_open(), HasSubstr("this is a zip archive, expected a safetensors file"));
  std::ofstream(path(), std::ios::trunc) << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  EXPECT_THAT(error_of_open(), HasSubstr("a Git LFS pointer, its content was not downloaded"));
  std::ofstream(path(), std::ios::trunc) << "GGUF" << std::string(60, 'x');
  EXPECT_THAT(error_of_open(), HasSubstr("this is a GGUF file"));
}

TEST_F(SafetensorsTest, OnlyTheHeaderIsReadAndTheSizeOfTheFileIsChecked) {
  const std::string header = R"({"a":{"dtype":"BF16","shape":[1000000,1000000],"data_offsets":[0,2000000000000]}})";
  write_raw(header.size(), header);
  EXPECT_THAT(error_of_open(), HasSubstr("tensors end at byte 2000000000000, the data has 0"));
  std::filesystem::resize_file(path(), 8 + header.size() + 2'000'000'000'000);  // sparse: nothing of it is read
  EXPECT_EQ(error_of_open(), "accepted");
}

struct BadHeader {
  const char* header;
  std::uint64_t data_bytes;
  const char* message;
};

// Each breaks one rule of the format; the message names the tensor and the rule.
const BadHeader kBadHeaders[] = {
    {"[]", 0, "f: header: does not begin with '{'"},
    {" {}", 0, "f: header: does not begin with '{'"},
    {"{\"a\":", 0, "f: header: is not valid UTF-8 JSON"},
    {"{\"\xFF\":1}", 0, "f: header: is not valid UTF-8 JSON"},
    {R"({"a":{"shape":[[1]]}})", 0, "f: header: is nested too deeply"},
    {R"({"a":{"shape":{"b":1}}})", 0, "f: header: is nested too deeply"},
    {R"({"a":1})", 0, "f: a: is not an object"},
    {R"({"a":"x"})", 0, "f: a: is not an object"},
    {R"({"a":[[[[[[1]]]]]]})", 0, "f: a: is not an object"},
    {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "f: a: has no dtype"},
    {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "f: a: has no shape"},
    {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "f: a: data_offsets are not two"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "f: a: data_offsets are not two"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "f: a: data_offsets are not two"},
    {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "f: a: shape has something else"},
    {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "f: a: shape has something else"},
    {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4, "f: a: product of the shape"},
    {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4]}})", 4, "f: a: size in bytes overflows"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "f: a: shape needs 8 bytes, offsets give 4"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "f: a: ends before it begins"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "f: a: duplicate key"},
    {R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "f: dtype: duplicate key"},
    {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     8, "f: b: overlaps the tensor before it"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
     12, "f: b: leaves a hole before it"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "f: a: leaves a hole before it"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
     "f: header: tensors end at byte 4, the data has 5"},
    {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3,
     "f: header: tensors end at byte 4, the data has 3"},
    {R"({"__metadata__":{"format":1}})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"__metadata__":["x"]})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"__metadata__":{"format":{"a":"b"}}})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"__metadata__":"x"})", 0, "f: __metadata__: is not an object of strings"},
    {R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1,
     "f: a: shape has more than 16 dimensions"},
};

TEST_F(SafetensorsTest, EveryBadHeaderIsRejectedWithItsRule) {
  for (const BadHeader& bad : kBadHeaders) {
    EXPECT_THAT(error_of(bad.header, bad.data_bytes), HasSubstr(bad.message)) << bad.header;
  }
  EXPECT_EQ(error_of("{}", 0), "accepted");
  EXPECT_EQ(error_of(R"({"a":{"dtype":"F4_NEW","shape":[7],"data_offsets":[0,3]}})", 3), "accepted");  // opaque
  EXPECT_THAT(error_of("{\"a\x1b[2Jb\":1}", 0), HasSubstr("f: "));
  EXPECT_THAT(error_of(R"({"a\u001b[2J":1})", 0), testing::Not(HasSubstr("\x1b")));  // terminals are not written to
  EXPECT_EQ(error_of(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4), "accepted");     // a scalar
  EXPECT_EQ(error_of(R"({"a":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]}})", 0), "accepted");  // empty
  EXPECT_EQ(
      error_of(R"({"__metadata__":{"a":"b","c":"d"},"a":{"x":[1],"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
      "accepted");
}

TEST_F(SafetensorsTest, TooManyTensorsAndDeepNestingEndQuickly) {
  std::string many = "{";
  for (int i = 0; i <= 1000; ++i) {
    many += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  EXPECT_EQ(error_of(many + "}", 0), "accepted");
  EXPECT_EQ(parse_safetensors_header(many + "}", 0, "f", 1000).error().message,
            "f: header: has more than 1000 tensors");
  EXPECT_THAT(error_of("{\"a\":{\"b\":" + std::string(1'000'000, '['), 0), HasSubstr("nested too deeply"));
  std::string metadata = R"({"__metadata__":{"0":"")";
  for (int i = 1; i < 200'000; ++i) metadata += ",\"" + std::to_string(i) + "\":\"\"";
  EXPECT_EQ(error_of(metadata + "}}", 0), "accepted");
}

}  // namespace
}  // namespace llmprof::base
