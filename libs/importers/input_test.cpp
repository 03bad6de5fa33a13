#include "importers/input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "importers/testing_pack.h"

namespace llmprof::importers {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

struct Folder {
  Folder() {
    std::string made = testing::TempDir() + "/input-XXXXXX";
    path = ::mkdtemp(made.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path + "/" + name, std::ios::binary) << content;
    return path + "/" + name;
  }
  std::string path;
};

// Text that does not compress to nothing, longer than any buffer inside.
std::string long_text(std::size_t bytes) {
  std::string text;
  for (std::uint64_t n = 1; text.size() < bytes; n = n * 6364136223846793005u + 1442695040888963407u)
    text += "event " + std::to_string(n >> 40) + "\n";
  return text;
}

std::string all_of(Input& input) {
  auto all = input.read_all(std::uint64_t{1} << 30);
  EXPECT_TRUE(all) << all.error().message;
  return all ? *all : "";
}

std::vector<std::string> remarks_of(const Input& input) {
  std::vector<std::string> lines;
  for (const InputRemark& remark : input.remarks())
    lines.push_back(std::string(trace::info_of(remark.loss).name) + ": " + remark.what + " at " + remark.where);
  return lines;
}

TEST(InputTest, PlainTextAndItsHead) {
  Input input = Input::of_text("x", "hello");
  EXPECT_EQ(*input.head(), "hello");
  char two[2];
  EXPECT_EQ(*input.read(two, 2), 2u);
  EXPECT_EQ(std::string(two, 2), "he");
  EXPECT_EQ(all_of(input), "llo");
  EXPECT_EQ(*input.read(two, 2), 0u);
  EXPECT_EQ(*input.plain_bytes(), 5u);
  EXPECT_EQ(*input.read_at(3, two, 2), 2u);
  EXPECT_EQ(std::string(two, 2), "lo");
  EXPECT_EQ(*input.read_at(UINT64_MAX, two, 2), 0u);
  EXPECT_FALSE(input.compressed());
}

TEST(InputTest, EmptyAndOneByteAreNotErrorsHere) {
  Input empty = Input::of_text("x", "");
  EXPECT_EQ(*empty.head(), "");
  EXPECT_EQ(all_of(empty), "");
  Input one = Input::of_text("x", "\x1f");
  EXPECT_EQ(all_of(one), "\x1f");
  EXPECT_FALSE(one.compressed());
}

TEST(InputTest, SeveralMembersAndFramesAreOneContent) {
  const std::string a = long_text(700'000), b = "small", c = long_text(100'000);
  Input gz = Input::of_text("x.gz", gzipped(a) + gzipped(b) + gzipped("") + gzipped(c));
  EXPECT_TRUE(gz.compressed());
  EXPECT_EQ(all_of(gz), a + b + c);
  EXPECT_THAT(gz.remarks(), IsEmpty());
  EXPECT_EQ(gz.stored_offset(), gz.file_bytes());
  const std::string skippable("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  Input zst = Input::of_text("x.zst", skippable + zstd_packed(a) + zstd_packed(b) + zstd_packed(c));
  EXPECT_EQ(all_of(zst), a + b + c);
  EXPECT_THAT(zst.remarks(), IsEmpty());
}

// Members may end anywhere in the buffer of stored bytes (256 KiB), within their trailer too. A file name in the header
// of a member moves its end to where it is wanted.
TEST(InputTest, MembersThatEndAtEveryPlaceOfTheBuffer) {
  const std::string text = long_text(1000), member = gzipped(text);
  std::string many, expected;
  while (many.size() + 3 * member.size() < (256 << 10)) many += member, expected += text;
  for (std::size_t end = (256 << 10) - 20; end < (256 << 10) + 20; ++end) {
    const std::string name(end - many.size() - member.size() - 1, 'n');
    const std::string header("\x1f\x8b\x08\x08\0\0\0\0\0\x03", 10);
    const std::string moved = header + name + '\0' + member.substr(10);
    ASSERT_EQ(many.size() + moved.size(), end);
    Input input = Input::of_text("x.gz", many + moved + member);
    ASSERT_EQ(all_of(input), expected + text + text) << end;
    ASSERT_THAT(input.remarks(), IsEmpty()) << end;
  }
}

TEST(InputTest, ManyMembersReadByteByByte) {
  std::string stored, expected;
  for (int i = 0; i < 50; ++i) stored += gzipped("part " + std::to_string(i)), expected += "part " + std::to_string(i);
  Input input = Input::of_text("x.gz", stored);
  std::string got;
  char one;
  while (*input.read(&one, 1) == 1) got += one;
  EXPECT_EQ(got, expected);
}

TEST(InputTest, ACutStreamGivesItsGoodPart) {
  const std::string text = long_text(500'000);
  for (const auto& packed : {gzipped(text), zstd_packed(text)}) {
    for (const std::size_t kept : {packed.size() / 2, packed.size() - 1, packed.size() - 9}) {
      Input input = Input::of_text("x", packed.substr(0, kept));
      const std::string got = all_of(input);
      EXPECT_TRUE(text.starts_with(got));
      EXPECT_GT(got.size(), text.size() / 8);
      ASSERT_EQ(input.remarks().size(), 1u) << kept << " of " << packed.size();
      EXPECT_EQ(input.remarks()[0].loss, trace::Loss::kInputTruncated);
      EXPECT_THAT(input.remarks()[0].what, HasSubstr("end in the middle"));
    }
  }
}

TEST(InputTest, ADamagedStreamGivesItsGoodPart) {
  const std::string text = long_text(3'000'000);
  for (std::string packed : {gzipped(text), zstd_packed(text)}) {
    for (std::size_t i = 0; i < 64; ++i) packed[packed.size() / 2 + i] = '\xff';
    Input input = Input::of_text("x", packed);
    const std::string got = all_of(input);
    EXPECT_GT(got.size(), 100'000u);
    ASSERT_EQ(input.remarks().size(), 1u);
    EXPECT_EQ(input.remarks()[0].loss, trace::Loss::kInputDamaged);
  }
  std::string wrong_sum = gzipped("hello");
  wrong_sum[wrong_sum.size() - 8] = static_cast<char>(wrong_sum[wrong_sum.size() - 8] ^ 1);
  Input input = Input::of_text("x", wrong_sum);
  EXPECT_EQ(all_of(input), "hello");
  EXPECT_THAT(remarks_of(input), testing::ElementsAre(HasSubstr("gzip data: its checksum is wrong")));
}

TEST(InputTest, WhatFollowsTheStreamIsCountedAndPaddingIsNot) {
  const std::string gz = gzipped("hello");
  Input trailing = Input::of_text("x", gz + "garbage");
  EXPECT_EQ(all_of(trailing), "hello");
  EXPECT_THAT(remarks_of(trailing), testing::ElementsAre("input_damaged: something after the gzip data at byte " +
                                                         std::to_string(gz.size()) + " of the file"));
  Input padded = Input::of_text("x", gz + std::string(3000, '\0'));
  EXPECT_EQ(all_of(padded), "hello");
  EXPECT_THAT(padded.remarks(), IsEmpty());
  Input zst = Input::of_text("x", zstd_packed("hello") + "x");
  EXPECT_EQ(all_of(zst), "hello");
  EXPECT_EQ(zst.remarks().size(), 1u);
}

TEST(InputTest, CompressionInsideCompressionIsNamed) {
  Input input = Input::of_text("x", gzipped(zstd_packed("hello")));
  ASSERT_FALSE(input.head());
  EXPECT_THAT(input.head().error().message, HasSubstr("zstd data inside gzip data"));
  char byte;
  EXPECT_FALSE(input.read(&byte, 1));
}

TEST(InputTest, ABombIsRefusedAtTheLimit) {
  const std::string zeros(32 << 20, '\0');
  for (const auto& packed : {gzipped(zeros), zstd_packed(zeros)}) {
    Input input = Input::of_text("x", packed, 4 << 20);
    const auto all = input.read_all(64 << 20);
    ASSERT_FALSE(all);
    EXPECT_THAT(all.error().message, HasSubstr("expand to more than 4.19 MB"));
    EXPECT_TRUE(input.refused());
    Input allowed = Input::of_text("x", packed, 32 << 20);
    EXPECT_EQ(all_of(allowed).size(), zeros.size());
  }
}

TEST(InputTest, AnExpandedFileCanBeReadAnywhere) {
  const Folder folder;
  const std::string text = long_text(3'000'000);
  auto input = Input::open(folder.write("x.gz", gzipped(text)));
  ASSERT_TRUE(input);
  ASSERT_TRUE(input->prepare_expansion(folder.path));
  EXPECT_THAT(std::distance(fs::directory_iterator(folder.path), {}), 1);  // the temporary file has no name
  EXPECT_EQ(input->descriptors().size(), 2u);
  EXPECT_EQ(*input->plain_bytes(), text.size());
  char some[100];
  EXPECT_EQ(*input->read_at(2'000'000, some, 100), 100u);
  EXPECT_EQ(std::string(some, 100), text.substr(2'000'000, 100));
  EXPECT_EQ(*input->read_at(text.size() - 10, some, 100), 10u);
  EXPECT_EQ(all_of(*input), text);
}

TEST(InputTest, WhatIsNoRegularFileIsNamed) {
  const Folder folder;
  ASSERT_EQ(::mkfifo((folder.path + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(Input::open(folder.path + "/fifo").error().message, HasSubstr("a pipe, not a regular file"));
  EXPECT_THAT(Input::open(folder.path).error().message, HasSubstr("a directory"));
  EXPECT_THAT(Input::open("/dev/zero").error().message, HasSubstr("a device"));
  EXPECT_EQ(Input::open(folder.path + "/none").error().code, ErrorCode::kNotFound);
}

TEST(InputTest, AFileThatChangesWhileItIsReadIsReadAsItWas) {
  const Folder folder;
  const std::string text = long_text(300'000);
  const std::string path = folder.write("x", text);
  auto shrinking = Input::open(path);
  ASSERT_TRUE(shrinking->head());
  fs::resize_file(path, 100'000);
  EXPECT_EQ(all_of(*shrinking), text.substr(0, 100'000));
  EXPECT_THAT(remarks_of(*shrinking), testing::ElementsAre(HasSubstr("became shorter")));
  auto growing = Input::open(path);
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_EQ(all_of(*growing), text.substr(0, 100'000));
  EXPECT_THAT(remarks_of(*growing), testing::ElementsAre(HasSubstr("grew")));
}

TEST(InputTest, AllOfItHasALimit) {
  Input input = Input::of_text("x", "123456");
  const auto all = input.read_all(5);
  ASSERT_FALSE(all);
  EXPECT_THAT(all.error().message, HasSubstr("byte 5"));
}

}  // namespace
}  // namespace llmprof::importers
