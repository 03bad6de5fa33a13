// Launch stacks against what the interpreter says itself, with every Python of this machine.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "collect/testing/test_log.h"
#include "host/stacks/testing/pythons.h"

namespace llmprof::collect {
namespace {

using testing::CaptureFolder;

std::string probe_library() { return LLMPROF_TEST_CLIENTS "/libcollect_stack_probe.so"; }

std::string run_case(const std::string& python, const std::string& name, const std::string& stacks = "1") {
  const CaptureFolder folder;
  std::string output;
  const int status = testing::run(folder,
                                  {.arguments = {python, "-X", "utf8", LLMPROF_STACK_CASES, probe_library(), name},
                                   .environment = {"LLMPROF_STACKS=" + stacks}},
                                  &output);
  EXPECT_EQ(status, 0) << python << ' ' << name << ": " << output;
  return output;
}

class LaunchStack : public ::testing::TestWithParam<const char*> {};

TEST_P(LaunchStack, IsWhatTheInterpreterSays) {
  static const auto pythons = host::testing::launch_stack_pythons();
  if (pythons.empty()) GTEST_SKIP() << "no Python 3.11 or later here";
  for (const std::string& python : pythons) {
    EXPECT_THAT(run_case(python, GetParam()), ::testing::HasSubstr("stacks compared")) << python;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LaunchStack,
                         ::testing::Values("plain", "generators", "exceptions", "compiled", "letters", "threads",
                                           "deep", "several", "traced"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(LaunchStackNative, IsWhatTheCLibrarySays) {
  for (const std::string& python : host::testing::launch_stack_pythons()) {
    EXPECT_THAT(run_case(python, "native", "2"), ::testing::HasSubstr("stacks compared")) << python;
    EXPECT_THAT(run_case(python, "both", "3"), ::testing::HasSubstr("stacks compared")) << python;
  }
}

TEST(LaunchStackNative, EndsWhereTheStackOfAFiberDoes) {
  for (const std::string& python : host::testing::launch_stack_pythons()) {
    EXPECT_THAT(run_case(python, "fiber", "2"), ::testing::HasSubstr("stacks compared")) << python;
  }
}

TEST(LaunchStackOff, AnOlderPythonIsSaid) {
  const auto pythons = host::testing::older_pythons();
  if (pythons.empty()) GTEST_SKIP() << "no Python before 3.11 here";
  EXPECT_EQ(run_case(pythons.front(), "off"), "this Python is older than 3.11\n");
}

// This test program is one: nothing is missing, so nothing is counted.
TEST(LaunchStackOff, AProgramWithoutPythonHasNone) {
  const CaptureFolder folder;
  ::setenv("LLMPROF_CAPTURE_DIR", folder.path().c_str(), 1);
  ::setenv("LLMPROF_STACKS", "1", 1);
  void* library = ::dlopen(probe_library().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto probe = reinterpret_cast<int (*)(char*, int)>(::dlsym(library, "probe_stack"));
  const auto reason = reinterpret_cast<const char* (*)()>(::dlsym(library, "probe_reason"));
  char text[64];
  for (int i = 0; i < 20; ++i) EXPECT_EQ(probe(text, sizeof text), 0);
  EXPECT_STREQ(reason(), "");
  ::unsetenv("LLMPROF_CAPTURE_DIR");
  ::unsetenv("LLMPROF_STACKS");
}

}  // namespace
}  // namespace llmprof::collect
