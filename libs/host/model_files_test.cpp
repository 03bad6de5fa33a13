#include "host/model_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace llmprof::host {
namespace {

namespace fs = std::filesystem;

class ModelFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "llmprof_files_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ + "/llama");
    write("llama/config.json");
    write("llama/model.safetensors");
    write("notes.txt");
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name) {
    EXPECT_TRUE(base::write_file(folder_ + "/" + name, "{}"));
    return folder_ + "/" + name;
  }
  std::string folder_;
};

TEST(ModelFiles, AreToldByTheirNames) {
  for (const char* path : {"config.json", "/m/config.json", "x.gguf", "/a b/model-00001-of-00002.safetensors",
                           "model.safetensors.index.json"}) {
    EXPECT_TRUE(is_model_file(path)) << path;
  }
  for (const char* path : {"", "/", "generation_config.json", "tokenizer.json", "x.gguf.txt", "gguf", "config.json/"}) {
    EXPECT_FALSE(is_model_file(path)) << path;
  }
}

TEST(ModelFiles, MapsAreReadLineByLine) {
  const char* text =
      "7f00-7f01 r--s 00000000 fe:01 12   /m/my model.gguf\n7f01-7f02 r--s 00001000 fe:01 12   /m/my model.gguf\n"
      "7f02-7f03 r-xp 00000000 fe:01 13   /usr/lib/libc.so.6\n7f03-7f04 rw-p 00000000 00:00 0\n"
      "7f04-7f05 r--p 00000000 fe:01 14   /m/x.safetensors (deleted)\n7f05-7f06 r--p 0 fe:01 15 /m/y.safetensors";
  const std::vector<std::string> expected{"/m/my model.gguf", "/m/y.safetensors"};
  EXPECT_EQ(mapped_model_files(text), expected);
}

TEST_F(ModelFilesTest, CommandLinesNameFilesAndFolders) {
  const auto found = [&](std::string words) {
    for (char& c : words) c = c == ' ' ? '\0' : c;
    ModelFiles files;
    files.look_at_arguments(::getpid(), words);
    std::vector<std::string> paths;
    for (const ModelFile& file : files.found()) paths.push_back(file.path.substr(folder_.size()));
    return paths;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(found("python serve.py --model " + folder_ + "/llama"), Paths{"/llama/config.json"});
  EXPECT_EQ(found("x --model=" + folder_ + "/llama/model.safetensors"), Paths{"/llama/model.safetensors"});
  EXPECT_EQ(found("x " + folder_ + "/llama " + folder_ + "/llama/config.json"), Paths{"/llama/config.json"});
  EXPECT_EQ(found("x " + folder_ + "/notes.txt " + folder_ + "/none/config.json -v"), Paths{});
}

TEST_F(ModelFilesTest, HubNamesAreLookedUpInTheCacheOfTheProcess) {
  // The environment of a process is the one it was started with: a child, then.
  fs::create_directories(folder_ + "/hub/models--org--tiny/snapshots/abc");
  write("hub/models--org--tiny/snapshots/abc/config.json");
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string setting = "HF_HUB_CACHE=" + folder_ + "/hub";
    const char* words[] = {"sleep", "60", nullptr};
    const char* environment[] = {setting.c_str(), nullptr};
    ::execve("/bin/sleep", const_cast<char**>(words), const_cast<char**>(environment));
    ::_exit(127);
  }
  ModelFiles files;
  for (int i = 0; i < 500 && files.found().empty(); ++i) {
    files.look_at_arguments(child, std::string_view("vllm\0serve\0org/tiny", 19));
    ::usleep(10'000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(files.found().size(), 1u);
  EXPECT_EQ(files.found()[0].path, folder_ + "/hub/models--org--tiny/snapshots/abc/config.json");
}

TEST_F(ModelFilesTest, WhatIsMappedOrOpenIsSeen) {
  const std::string mapped = folder_ + "/llama/model.safetensors", open = folder_ + "/llama/config.json";
  const int map_descriptor = ::open(mapped.c_str(), O_RDONLY | O_CLOEXEC);
  void* memory = ::mmap(nullptr, 2, PROT_READ, MAP_PRIVATE, map_descriptor, 0);
  ::close(map_descriptor);
  const int descriptor = ::open(open.c_str(), O_RDONLY | O_CLOEXEC);
  ModelFiles files;
  files.look_at_files(::getpid());
  files.look_at_files(::getpid());  // again: each once
  ::close(descriptor);
  ::munmap(memory, 2);
  ASSERT_EQ(files.found().size(), 2u);
  EXPECT_EQ(files.found()[0].path, mapped);
  EXPECT_EQ(files.found()[0].how, "mapped by process " + std::to_string(::getpid()));
  EXPECT_EQ(files.found()[1].path, open);
}

}  // namespace
}  // namespace llmprof::host
