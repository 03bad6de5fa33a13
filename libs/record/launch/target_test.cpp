#include "record/launch/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "record/launch/injection.h"
#include "record/testing/folder.h"

namespace llmprof::record {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Target, IsFoundAsAShellFindsIt) {
  const TestFolder folder;
  folder.write("a/tool", "not executable", 0644);
  folder.write("b/tool", "#!/bin/sh\n", 0755);
  const std::string search = (folder / "a") + ":" + (folder / "b");
  const auto found = find_target("tool", search);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, folder / "b/tool");
  EXPECT_EQ(find_target("tool", folder / "a").error().code, ErrorCode::kPermission);
  EXPECT_EQ(find_target("other", search).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(find_target("", search).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(find_target(folder.path(), search).error().code, ErrorCode::kPermission);  // a folder
  EXPECT_TRUE(find_target(folder / "b/tool", ""));                                     // a slash: no search
}

TEST(Target, TellsWhatCannotBeInjected) {
  const TestFolder folder;
  EXPECT_FALSE(why_not_injectable(PROGRAM, "/bin").has_value());
  EXPECT_THAT(why_not_injectable(STATIC_PROGRAM, "/bin").value_or(""), HasSubstr("statically linked"));

  std::string foreign(64, '\0');  // an ELF header of class 32
  foreign.replace(0, 5,
                  "\x7f"
                  "ELF\x01");
  EXPECT_THAT(why_not_injectable(folder.write("old", foreign, 0755), "").value_or(""), HasSubstr("32-bit"));
  foreign[4] = 2;        // 64-bit
  foreign[18] = '\x16';  // machine: S/390
  EXPECT_THAT(why_not_injectable(folder.write("mainframe", foreign, 0755), "").value_or(""), HasSubstr("architecture"));
  EXPECT_THAT(why_not_injectable(folder.write("torn", foreign.substr(0, 20), 0755), "").value_or(""),
              HasSubstr("short"));
}

TEST(Target, FollowsScriptsToTheirInterpreter) {
  const TestFolder folder;
  const auto reason = [&](const std::string& text) {
    return why_not_injectable(folder.write("script", text, 0755), folder.path() + ":/usr/bin:/bin")
        .value_or("injectable");
  };
  EXPECT_EQ(reason("#!/bin/sh\necho\n"), "injectable");
  EXPECT_EQ(reason("echo no first line\n"), "injectable");
  EXPECT_THAT(reason(std::string("#!") + STATIC_PROGRAM + "\n"), HasSubstr("statically linked"));
  EXPECT_EQ(reason("#!"), "injectable");

  std::filesystem::create_symlink(STATIC_PROGRAM, folder / "static_tool");
  EXPECT_THAT(reason("#!/usr/bin/env static_tool\n"), HasSubstr("statically linked"));
  EXPECT_THAT(reason("#!/usr/bin/env -S A=b static_tool -x\n"), HasSubstr("statically linked"));
  EXPECT_EQ(reason("#!/usr/bin/env script\n"), "injectable");  // itself, for ever: the search ends
}

TEST(Target, TellsSetuidPrograms) {
  if (::geteuid() == 0) {
    const TestFolder folder;
    const std::string path = folder.write("tool", "", 0755);
    std::filesystem::copy_file(PROGRAM, path, std::filesystem::copy_options::overwrite_existing);
    ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    std::filesystem::permissions(path, std::filesystem::perms(04755));
    EXPECT_THAT(why_not_injectable(path, "").value_or(""), HasSubstr("setuid"));
    std::filesystem::permissions(path, std::filesystem::perms(02755));
    EXPECT_THAT(why_not_injectable(path, "").value_or(""), HasSubstr("setgid"));
  } else {
    EXPECT_THAT(why_not_injectable("/usr/bin/passwd", "").value_or(""), HasSubstr("setuid"));
  }
}

TEST(Injection, AddsToTheEnvironmentAndKeepsWhatIsThere) {
  const InjectionOptions options{.library_folder = "/opt/lib", .capture_folder = "/runs/x/capture", .max_bytes = 1000};
  const Injection plain = child_environment({"HOME=/root", "LLMPROF_MAX_BYTES=7"}, options);
  EXPECT_THAT(plain.kept, IsEmpty());
  EXPECT_THAT(
      plain.environment,
      ElementsAre("HOME=/root", "LLMPROF_MAX_BYTES=1000", "LD_PRELOAD=/opt/lib/libllmprof_blas.so",
                  "NVTX_INJECTION64_PATH=/opt/lib/libllmprof_inject.so",
                  "CUDA_INJECTION64_PATH=/opt/lib/libllmprof_inject.so", "LLMPROF_CAPTURE_DIR=/runs/x/capture"));

  const Injection kept = child_environment({"LD_PRELOAD=/lib/jemalloc.so", "NVTX_INJECTION64_PATH=/n.so"}, options);
  EXPECT_THAT(kept.environment, Contains("LD_PRELOAD=/lib/jemalloc.so:/opt/lib/libllmprof_blas.so"));
  EXPECT_THAT(kept.environment, Contains("NVTX_INJECTION64_PATH=/n.so"));
  EXPECT_THAT(kept.kept, ElementsAre("LD_PRELOAD=/lib/jemalloc.so", "NVTX_INJECTION64_PATH=/n.so"));

  InjectionOptions less = options;
  less.blas = less.nvtx = false;
  const Injection few = child_environment({"LD_PRELOAD="}, less);
  EXPECT_THAT(few.environment, Contains("LD_PRELOAD="));
  EXPECT_THAT(few.environment, Not(Contains(HasSubstr("NVTX"))));
}

TEST(Injection, PutsTheHookOfModulesInFrontOfPythonsPath) {
  InjectionOptions options{.library_folder = "/opt/lib", .capture_folder = "/runs/x/capture", .max_bytes = 1000};
  EXPECT_THAT(child_environment({"PYTHONPATH=/mine"}, options).environment, Contains("PYTHONPATH=/mine"));
  options.modules = true;
  EXPECT_THAT(child_environment({"PYTHONPATH=/mine::/more"}, options).environment,
              Contains("PYTHONPATH=/opt/lib/python/hook:/mine::/more"));
  // No entry of ours may become an empty one: that is the current folder.
  EXPECT_THAT(child_environment({"PYTHONPATH="}, options).environment, Contains("PYTHONPATH=/opt/lib/python/hook"));
  EXPECT_THAT(child_environment({}, options).environment, Contains("PYTHONPATH=/opt/lib/python/hook"));
}

TEST(Injection, TellsTheHookWhatIsAskedFor) {
  InjectionOptions options{.library_folder = "/opt/lib", .capture_folder = "/runs/x/capture", .max_bytes = 1000};
  EXPECT_THAT(child_environment({"LLMPROF_REQUESTS=1"}, options).environment,
              AllOf(Contains("LLMPROF_REQUESTS=1"), Not(Contains(HasSubstr("PYTHONPATH")))));  // the user's, for a plugin
  options.requests = true;
  EXPECT_THAT(child_environment({}, options).environment,
              AllOf(Contains("LLMPROF_REQUESTS=1"), Contains("PYTHONPATH=/opt/lib/python/hook"),
                    Not(Contains(HasSubstr("LLMPROF_MODULES")))));
  options.requests = false, options.modules = true;
  EXPECT_THAT(child_environment({}, options).environment,
              AllOf(Contains("LLMPROF_MODULES=1"), Not(Contains(HasSubstr("LLMPROF_REQUESTS")))));
}

TEST(Injection, PassesOnWhatTheCollectorIsAskedFor) {
  InjectionOptions options{.library_folder = "/opt/lib", .capture_folder = "/runs/x/capture", .max_bytes = 1000};
  EXPECT_THAT(child_environment({"LLMPROF_STACKS=3"}, options).environment, Contains("LLMPROF_STACKS=3"));
  options.collector = {.gpu = 3, .graphs = 2, .stacks = 1};
  EXPECT_THAT(child_environment({"LLMPROF_STACKS=3"}, options).environment,
              testing::IsSupersetOf({"LLMPROF_GPU=3", "LLMPROF_GRAPHS=2", "LLMPROF_STACKS=1"}));
}

TEST(Injection, ReadsWhichStacks) {
  EXPECT_EQ(*parse_stacks("python"), 1);
  EXPECT_EQ(*parse_stacks("native"), 2);
  EXPECT_EQ(*parse_stacks("native,python"), 3);
  for (const char* wrong : {"", "all", "python,", ",native", "python native"}) {
    EXPECT_EQ(parse_stacks(wrong).error().code, ErrorCode::kUsage) << wrong;
  }
}

TEST(Injection, KnowsWhenPythonWillNotLoadTheHook) {
  EXPECT_THAT(why_no_python_hook({"python3", "-I", "x.py"}).value_or(""), HasSubstr("python3 -I"));
  EXPECT_TRUE(why_no_python_hook({"/usr/bin/python3.12", "-uS", "x.py"}));
  EXPECT_TRUE(why_no_python_hook({"python", "-X", "dev", "-E", "x.py"}));
  EXPECT_FALSE(why_no_python_hook({"python", "-X", "IES", "x.py"}));  // a value
  EXPECT_FALSE(why_no_python_hook({"python", "-WI", "x.py"}));
  EXPECT_FALSE(why_no_python_hook({"python", "-u", "x.py", "-I"}));  // the program's own
  EXPECT_FALSE(why_no_python_hook({"python", "-m", "I"}));
  EXPECT_FALSE(why_no_python_hook({"python", "-c", "-I"}));
  EXPECT_FALSE(why_no_python_hook({"torchrun", "-I"}));
}

TEST(Injection, ChecksItsLibraries) {
  const TestFolder folder;
  InjectionOptions options{.library_folder = folder.path()};
  EXPECT_EQ(check_libraries(options).error().code, ErrorCode::kNotFound);
  folder.write("libllmprof_inject.so", "");
  EXPECT_EQ(check_libraries(options).error().code, ErrorCode::kNotFound);
  folder.write("libllmprof_blas.so", "");
  EXPECT_TRUE(check_libraries(options));

  folder.write("with blank/libllmprof_inject.so", "");
  folder.write("with blank/libllmprof_blas.so", "");
  options.library_folder = folder / "with blank";  // LD_PRELOAD would be cut in two
  EXPECT_EQ(check_libraries(options).error().code, ErrorCode::kUnsupported);
  options.blas = false;
  EXPECT_TRUE(check_libraries(options));
}

}  // namespace
}  // namespace llmprof::record
