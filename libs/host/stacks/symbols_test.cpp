// Names that come from beside the mapped files: the kernel's, a JIT compiler's, and those of separate debug files.
#include "host/stacks/symbols.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "host/stacks/elf.h"
#include "host/stacks/testing/sampled.h"

namespace llmprof::host {
namespace {

class Folder {
 public:
  Folder() {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("llmprof-symbols-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string name_at(const KernelSymbols& symbols, std::uint64_t address) {
  std::uint64_t begin = 0;
  const auto* function = symbols.containing(address, begin);
  return function == nullptr ? "" : std::string(function->name) + " " + std::string(function->module);
}

TEST(KernelSymbols, FindsTheFunctionOfAnAddress) {
  const KernelSymbols symbols(
      "ffffffff81000100 T do_sched_yield\nffffffff81000200 d some_data\nffffffff81000000 t first\n"
      "ffffffffc0000000 t nvidia_ioctl\t[nvidia]\nnonsense\n\n");
  ASSERT_TRUE(symbols.known());
  EXPECT_EQ(name_at(symbols, 0xffffffff81000000), "first [kernel]");
  EXPECT_EQ(name_at(symbols, 0xffffffff810000ff), "first [kernel]");
  EXPECT_EQ(name_at(symbols, 0xffffffff81000250), "do_sched_yield [kernel]");  // data is no function
  EXPECT_EQ(name_at(symbols, 0xffffffffc0000010), "nvidia_ioctl [nvidia]");
  EXPECT_EQ(name_at(symbols, 0xffffffff80ffffff), "");
  EXPECT_EQ(name_at(symbols, 0xffffffffb0000000), "");  // far behind the last one before it
}

TEST(KernelSymbols, HiddenAddressesAreNoSymbols) {
  EXPECT_FALSE(KernelSymbols("0000000000000000 T _text\n0000000000000000 T do_exit\n").known());
  EXPECT_FALSE(KernelSymbols("").known());
}

TEST(PerfMap, ReadsWhatIsAppended) {
  const Folder folder;
  std::ofstream file(folder / "map");
  file << "1000 10 first\n2000 20 LazyCompile:*f /a b.js:1\n3000 10 unfinis" << std::flush;
  PerfMap map(folder / "map", ::getuid());
  std::uint64_t now = 1'000'000'000;
  const auto name = [&](std::uint64_t address) {
    const std::string* found = map.containing(address, now);
    return found == nullptr ? "" : *found;
  };
  EXPECT_EQ(name(0x1000), "first");
  EXPECT_EQ(name(0x100f), "first");
  EXPECT_EQ(name(0x1010), "");
  EXPECT_EQ(name(0x2010), "LazyCompile:*f /a b.js:1");
  EXPECT_EQ(name(0x3000), "");
  file << "hed\n1008 20 over it\n" << std::flush;
  EXPECT_EQ(name(0x3000), "");  // not looked at again yet
  now += 1'000'000'000;
  EXPECT_EQ(name(0x3000), "unfinished");
  EXPECT_EQ(name(0x1007), "first");
  EXPECT_EQ(name(0x1008), "over it");
}

TEST(PerfMap, RefusesFilesOfOthersLinksAndNonsense) {
  const Folder folder;
  std::ofstream(folder / "map") << "1000 10 first\nzz 10 x\n1000\n2000 0 empty\nffffffffffffffff 10 wraps\n4000 10\n";
  EXPECT_NE(PerfMap(folder / "map", ::getuid()).containing(0x1000, 1), nullptr);
  for (const std::uint64_t address : {0x2000ull, 0x4000ull, ~0ull, 0ull})
    EXPECT_EQ(PerfMap(folder / "map", ::getuid()).containing(address, 1), nullptr);
  if (::getuid() != 0) {
    EXPECT_EQ(PerfMap(folder / "map", ::getuid() + 1).containing(0x1000, 1), nullptr);
  }
  std::filesystem::create_symlink(folder / "map", folder / "link");
  EXPECT_EQ(PerfMap(folder / "link", ::getuid()).containing(0x1000, 1), nullptr);
  EXPECT_EQ(PerfMap(folder / "none", ::getuid()).containing(0x1000, 1), nullptr);
  std::mt19937 random(7);
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += "0123456789abcdef x\n"[random() % 19];
  std::ofstream(folder / "noise") << bytes;
  PerfMap(folder / "noise", ::getuid()).containing(0x1000, 1);
}

TEST(PerfMap, KnowsPythonsNames) {
  PerfMapPython python;
  ASSERT_TRUE(parse_python_symbol("py::Model.forward:/srv/model.py", python));
  EXPECT_EQ(python.function, "Model.forward");
  EXPECT_EQ(python.file, "/srv/model.py");
  for (const char* other : {"py::", "py:::x", "py::name", "LazyCompile:f", ""})
    EXPECT_FALSE(parse_python_symbol(other, python)) << other;
}

// A stripped program with a link to its symbols, as distributions and `objcopy --add-gnu-debuglink` leave it.
TEST(Symbols, FollowTheDebugLink) {
  const Folder folder;
  const auto run = [](const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; };
  const std::string program = folder / "program", debug = folder / "program.debug";
  const bool made =
      run("objcopy --remove-section .note.gnu.build-id " VICTIM " '" + (folder / "whole") + "'") &&
      run("objcopy --only-keep-debug '" + (folder / "whole") + "' '" + debug + "'") &&
      run("objcopy --strip-all --add-gnu-debuglink='" + debug + "' '" + (folder / "whole") + "' '" + program + "'");
  if (!made) GTEST_SKIP() << "no objcopy";
  const auto whole = ElfFile::parse(open_file(folder / "whole", 0)), file = ElfFile::parse(open_file(program, 0));
  ASSERT_TRUE(whole && file);
  EXPECT_FALSE(file->has_full_symbols());
  EXPECT_EQ(file->debug_link().name, "program.debug");
  const auto address = Symbols(*whole).address_of("chain_c");
  ASSERT_TRUE(address);
  EXPECT_EQ(Symbols(*file, program).address_of("chain_c"), address);
  const auto place = Symbols(*file, program).containing(*address);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->name, "chain_c");
  EXPECT_EQ(Symbols(*file, "/elsewhere/program").address_of("chain_c"), std::nullopt);
  EXPECT_EQ(Symbols(*file, "/program", {folder / ""}).address_of("chain_c"), address);  // another root
  std::ofstream(debug, std::ios::app) << "changed";  // the link's checksum is not its own any more
  EXPECT_EQ(Symbols(*file, program).address_of("chain_c"), std::nullopt);
}

// What a program makes the kernel do has the kernel's names, where this machine permits to see them.
TEST(KernelFrames, AreNamed) {
  const auto sampled = testing::sample({VICTIM, "kernel"}, 1000);  // names are read meanwhile
  if (!sampled.error.empty()) GTEST_SKIP() << sampled.error;
  if (!sampled.stats.kernel_why.empty()) GTEST_SKIP() << sampled.stats.kernel_why;
  const std::size_t named = sampled.count([](const testing::SampledStack& stack) {
    const auto& frames = stack.frames;
    const bool kernel = !frames.empty() && frames.front().kind == wire::FrameKind::kKernel;
    return kernel && frames.front().function != "[kernel]" && frames.front().file == "[kernel]";
  });
  EXPECT_GE(named, 50u) << sampled.describe();
}

}  // namespace
}  // namespace llmprof::host
