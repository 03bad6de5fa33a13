#include "base/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace llmprof::base {
namespace {

using testing::HasSubstr;

class RegularFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "file"; }
  static ErrorCode code_of(const std::string& path) {
    auto file = RegularFile::open(path);
    return file ? ErrorCode::kInternal : file.error().code;
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("llmprof_regular_file_" + std::to_string(::getpid()));
};

TEST_F(RegularFileTest, ReadsAtOffsetsAndSaysWhereAFileEnds) {
  std::ofstream(path()) << "abcdef";
  auto file = RegularFile::open(path());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes(), 6U);
  char three[3];
  ASSERT_TRUE(file->read_at(2, three, 3));
  EXPECT_EQ(std::string(three, 3), "cde");
  EXPECT_EQ(*file->beginning(100), "abcdef");
  std::filesystem::resize_file(path(), 4);  // while it is read
  EXPECT_THAT(file->read_at(2, three, 3).error().message, HasSubstr("file: ends at byte 4"));
}

TEST_F(RegularFileTest, OtherThingsAreNamedAndNotRead) {
  EXPECT_EQ(code_of(path()), ErrorCode::kNotFound);
  EXPECT_THAT(RegularFile::open(folder_).error().message, HasSubstr("a directory, not a regular file"));
  EXPECT_THAT(RegularFile::open("/dev/zero").error().message, HasSubstr("/dev/zero: a device, not a regular file"));
  if (::geteuid() == 0) return;  // root may read everything
  std::ofstream(path()) << "x";
  std::filesystem::permissions(path(), std::filesystem::perms::none);
  EXPECT_EQ(code_of(path()), ErrorCode::kPermission);
}

TEST(Recognise, WrongContentIsNamed) {
  EXPECT_EQ(wrong_content("f", "", "a GGUF file").message, "f: empty, expected a GGUF file");
  EXPECT_EQ(wrong_content("f", "x", "a GGUF file").message, "f: not a GGUF file");
  EXPECT_EQ(wrong_content("f", "PK\x03\x04", "a GGUF file").message, "f: this is a zip archive, expected a GGUF file");
  // A safetensors header of 0x8b1f bytes begins like gzip, one of 0x280 bytes like a pickle.
  using namespace std::string_view_literals;
  EXPECT_EQ(recognise("\x1f\x8b\0\0\0\0\0\0{"sv), "a safetensors file");
  EXPECT_EQ(recognise("\x80\x02\0\0\0\0\0\0{"sv), "a safetensors file");
  EXPECT_EQ(recognise("\x1f\x8b\x08"sv), "gzip data");
  EXPECT_THAT(std::string(recognise("\x80\x02}q"sv)), HasSubstr("pickle"));
}

}  // namespace
}  // namespace llmprof::base
