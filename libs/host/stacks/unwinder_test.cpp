// The whole way, from the kernel's samples to named stacks, against programs whose stacks are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "host/stacks/testing/sampled.h"

namespace llmprof::host {
namespace {

using testing::Sampled;
using testing::SampledStack;

constexpr std::uint64_t kEnough = 150;

// Where the machine forbids sampling there is nothing to compare; what is said then is tested instead.
#define SKIP_WITHOUT_PERMISSION(sampled)                                                      \
  if (!(sampled).error.empty()) {                                                             \
    EXPECT_NE((sampled).error.find("perf_event_open"), std::string::npos) << (sampled).error; \
    EXPECT_FALSE((sampled).hint.empty());                                                     \
    GTEST_SKIP() << (sampled).error;                                                          \
  }                                                                                           \
  ASSERT_GE((sampled).stacks.size(), kEnough)

// Samples in spin() (where programs are for all but some microseconds), and of those with this chain to the end.
struct Tally {
  std::size_t spinning = 0, right = 0;
};

Tally tally(const Sampled& sampled, const std::vector<std::string>& chain) {
  Tally out;
  for (const SampledStack& stack : sampled.stacks) {
    const auto functions = stack.functions();
    if (std::find(functions.begin(), functions.end(), "spin") == functions.end()) continue;
    ++out.spinning;
    if (stack.has_chain(chain) && !stack.truncated) ++out.right;
  }
  return out;
}

// All but a few: a sample can hit the first instructions of the vdso or a lazily bound call, whose tables are not
// always exact.
void expect_nearly_all(const Sampled& sampled, const std::vector<std::string>& chain) {
  const Tally found = tally(sampled, chain);
  EXPECT_GE(found.spinning, kEnough / 2) << sampled.describe();
  EXPECT_GE(found.right * 100, found.spinning * 98) << sampled.describe();
}

TEST(Unwinder, FollowsCallsWithoutFramePointers) {
  const Sampled sampled = testing::sample({VICTIM, "chain"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_nearly_all(sampled, {"spin", "chain_c", "chain_b", "chain_a", "main"});
  for (const SampledStack& stack : sampled.stacks) {
    EXPECT_EQ(stack.pid, stack.tid);
    EXPECT_EQ(stack.weight_ns, 1'000'000'000u / 997);
  }
  EXPECT_TRUE(std::is_sorted(sampled.stacks.begin(), sampled.stacks.end(),
                             [](const SampledStack& a, const SampledStack& b) { return a.ts_ns < b.ts_ns; }));
}

TEST(Unwinder, GoesThroughASharedLibrary) {
  const Sampled sampled = testing::sample({VICTIM, "library"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_nearly_all(sampled, {"spin", "chain_c", "chain_b", "through_library", "main"});
}

TEST(Unwinder, GoesThroughALibrarysCallback) {
  const Sampled sampled = testing::sample({VICTIM, "sort"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  // The C library's own functions between may have no names.
  const std::size_t right = sampled.count([](const SampledStack& stack) {
    const auto all = stack.functions();
    const auto compare = std::find(all.begin(), all.end(), "compare"),
               sorts = std::find(all.begin(), all.end(), "sorts");
    return !stack.truncated && compare != all.end() && sorts - compare >= 2 && stack.has_chain({"sorts", "main"});
  });
  EXPECT_GE(right * 100, tally(sampled, {"spin"}).spinning * 98) << sampled.describe();
  EXPECT_GE(right, kEnough / 2);
}

TEST(Unwinder, KnowsFramesWhoseSizeIsOnlyKnownAtRunTime) {
  const Sampled sampled = testing::sample({VICTIM, "alloca"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_nearly_all(sampled, {"spin", "chain_c", "allocates", "main"});
}

// The kernel copies a stack up to the first page that is not in memory; the rest is read by us.
TEST(Unwinder, GoesOverPagesThatWereNeverTouched) {
  const Sampled sampled = testing::sample({VICTIM, "hollow"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_nearly_all(sampled, {"spin", "chain_c", "hollow", "main"});
}

TEST(Unwinder, GoesThroughASignalHandler) {
  const Sampled sampled = testing::sample({VICTIM, "signal"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_nearly_all(sampled, {"spin", "chain_c", "handler"});
  expect_nearly_all(sampled, {"raises", "main"});
}

TEST(Unwinder, ReachesTheBeginOfAThread) {
  const Sampled sampled = testing::sample({VICTIM, "thread"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_nearly_all(sampled, {"spin", "chain_c", "chain_b", "chain_a", "thread_main"});
  EXPECT_GE(sampled.count([](const SampledStack& stack) { return stack.tid != stack.pid; }), kEnough / 2);
}

TEST(Unwinder, FollowsChildren) {
  const Sampled sampled = testing::sample({VICTIM, "fork"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_nearly_all(sampled, {"spin", "chain_c", "chain_b", "chain_a", "main"});
  EXPECT_GE(sampled.count([&](const SampledStack& stack) { return stack.pid != sampled.root; }), kEnough / 2);
}

// recurses() uses at least 16 bytes of stack: 20000 of them do not fit into the copied 56 KiB, nor into the limit of
// frames.
TEST(Unwinder, SaysWhenAStackIsTooDeep) {
  const Sampled sampled = testing::sample({VICTIM, "deep"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  const std::size_t deep = sampled.count([](const SampledStack& stack) {
    return stack.truncated && stack.has_chain({"spin", "chain_c", "recurses", "recurses", "recurses"});
  });
  EXPECT_GE(deep * 100, tally(sampled, {"spin"}).spinning * 98) << sampled.describe();
  EXPECT_GE(sampled.stats.truncated, deep);
}

// Without symbols the functions still have one name each, made of the file and where they begin: most samples have the
// same five of them in a row, from spin() to main().
void expect_five_unnamed(const Sampled& sampled, const std::string& file) {
  std::map<std::vector<std::string>, std::size_t> inner;
  for (const SampledStack& stack : sampled.stacks) {
    const auto functions = stack.functions();
    const auto first = std::find_if(functions.begin(), functions.end(),
                                    [&](const std::string& name) { return name.starts_with(file + "+0x"); });
    if (functions.end() - first >= 5 && !stack.truncated) ++inner[{first, first + 5}];
  }
  ASSERT_FALSE(inner.empty()) << sampled.describe();
  const auto most =
      std::max_element(inner.begin(), inner.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_GE(most->second, kEnough / 2) << sampled.describe();
  EXPECT_EQ(std::set<std::string>(most->first.begin(), most->first.end()).size(), 5u) << sampled.describe();
}

TEST(Unwinder, UnwindsStrippedPrograms) {
  const Sampled sampled = testing::sample({VICTIM_STRIPPED, "chain"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  expect_five_unnamed(sampled, "host_victim_stripped");
}

// The tables are then read from the program's memory.
TEST(Unwinder, UnwindsProgramsWhoseFileIsGone) {
  const auto copy = std::filesystem::temp_directory_path() / ("host_victim_copy" + std::to_string(::getpid()));
  std::filesystem::copy_file(VICTIM, copy, std::filesystem::copy_options::overwrite_existing);
  const Sampled sampled = testing::sample({copy.string(), "unlinked"}, kEnough);
  std::filesystem::remove(copy);
  SKIP_WITHOUT_PERMISSION(sampled);
  // A sample of its first instructions, before it removes its file, tells all names for good.
  const std::size_t named = sampled.count([](const SampledStack& stack) {
    return stack.has_chain({"spin", "chain_c", "chain_b", "chain_a", "main"});
  });
  if (named < kEnough / 2) expect_five_unnamed(sampled, copy.filename().string());
}

TEST(Unwinder, FindsTheCallerOfAssemblerWithWrongTables) {
  const Sampled sampled = testing::sample({VICTIM, "assembler"}, kEnough);
  SKIP_WITHOUT_PERMISSION(sampled);
  const std::size_t right = sampled.count([](const SampledStack& stack) {
    return !stack.truncated && stack.has_chain({"silent_frame", "assembler", "main"});
  });
  EXPECT_GE(right * 100, sampled.stacks.size() * 95) << sampled.describe();
}

TEST(StackSampler, SaysWhyItCannotSample) {
  const auto path = std::filesystem::temp_directory_path() / ("llmprof-none-" + std::to_string(::getpid()));
  HostLog log = std::move(HostLog::create(path.string()).value());
  std::filesystem::remove(path);
  const auto sampler = StackSampler::open(0x7ffffff0, {}, log);  // no process has this number
  ASSERT_FALSE(sampler);
  EXPECT_NE(sampler.error().message.find("perf_event_open"), std::string::npos);
}

}  // namespace
}  // namespace llmprof::host
