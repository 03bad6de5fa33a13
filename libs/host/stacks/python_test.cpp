// Python frames, read from outside, against what the interpreter says itself. The tests named PythonMemory need no
// permission to sample, only to read a child's memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>

#include "host/stacks/python.h"
#include "host/stacks/testing/pythons.h"
#include "host/stacks/testing/sampled.h"

namespace llmprof::host {
namespace {

using testing::Sampled;
using testing::SampledFrame;
using testing::SampledStack;

// A script of testing/: where it was built, or in the folder LLMPROF_TEST_SCRIPTS on another machine.
std::string script(const std::string& built_path) {
  const char* folder = std::getenv("LLMPROF_TEST_SCRIPTS");
  return folder == nullptr ? built_path : std::string(folder) + built_path.substr(built_path.rfind('/'));
}

// python_waits.py, with the lines its threads announced: name -> thread id and stack.
class WaitingPython {
 public:
  struct Announced {
    pid_t tid = 0;
    std::vector<std::string> frames;
  };

  explicit WaitingPython(const std::string& python) {
    int input[2], output[2];
    EXPECT_EQ(::pipe(input), 0);
    EXPECT_EQ(::pipe(output), 0);
    pid = ::fork();
    if (pid == 0) {
      ::dup2(input[0], 0);
      ::dup2(output[1], 1);
      for (const int end : {input[0], input[1], output[0], output[1]}) ::close(end);
      ::setenv("PYTHONIOENCODING", "utf-8", 1);
      ::execl(python.c_str(), python.c_str(), script(PYTHON_WAITS).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    FILE* lines = ::fdopen(output[0], "r");
    char line[65536];
    while (announced.size() < 2 && ::fgets(line, sizeof line, lines) != nullptr) note(line);
    ::fclose(lines);
    wait_until_blocked();
  }
  ~WaitingPython() {
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::close(input_);
  }

  pid_t pid = -1;
  std::map<std::string, Announced> announced;

 private:
  void note(std::string line) {
    if (line.ends_with('\n')) line.pop_back();
    std::stringstream words(line);
    std::string name, tid, frame;
    std::getline(words, name, '\t');
    std::getline(words, tid, '\t');
    Announced& entry = announced[name];
    entry.tid = std::stoi(tid);
    while (std::getline(words, frame, '\t')) entry.frames.push_back(frame);
  }
  // Between the announcement and the wait lie some instructions.
  void wait_until_blocked() const {
    for (const auto& [name, entry] : announced) {
      const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(entry.tid) + "/stat";
      for (int i = 0; i < 600; ++i) {
        FILE* file = ::fopen(path.c_str(), "r");
        char text[1024] = "";
        const std::size_t bytes = file != nullptr ? ::fread(text, 1, sizeof text - 1, file) : 0;
        if (file != nullptr) ::fclose(file);
        const std::string stat(text, bytes);
        const std::size_t state = stat.rfind(") ");
        if (state != std::string::npos && stat[state + 2] == 'S') break;
        ::usleep(50'000);
      }
    }
  }
  int input_ = -1;
};

std::vector<std::string> in_words(const std::vector<PythonFrame>& frames) {
  std::vector<std::string> out;
  for (const PythonFrame& frame : frames)
    out.push_back(frame.function + "|" + frame.file.substr(frame.file.rfind('/') + 1) + "|" +
                  std::to_string(frame.line));
  return out;
}

TEST(PythonMemory, AgreesWithTheInterpretersOwnStacks) {
  const std::vector<std::string> pythons = testing::supported_pythons();
  if (pythons.empty()) GTEST_SKIP() << "no CPython 3.11 or 3.12 on this machine";
  for (const std::string& python : pythons) {
    SCOPED_TRACE(python);
    const WaitingPython waiting(python);
    ASSERT_EQ(waiting.announced.size(), 2u);
    ModuleCache modules;
    AddressSpace space(waiting.pid, modules);
    space.read_proc();
    AddressSpace::Place place;
    ASSERT_TRUE(space.find_symbol("_PyRuntime", place));
    PythonProcess process(waiting.pid, place);
    ASSERT_EQ(process.why(), "");
    for (const auto& [name, entry] : waiting.announced) {
      EXPECT_GE(entry.frames.size(), 6u);
      EXPECT_EQ(in_words(process.stack_of_thread(entry.tid)), entry.frames) << name;
    }
    EXPECT_TRUE(process.stack_of_thread(1).empty());
  }
}

std::vector<SampledFrame> python_frames(const SampledStack& stack) {
  std::vector<SampledFrame> out;
  std::copy_if(stack.frames.begin(), stack.frames.end(), std::back_inserter(out),
               [](const SampledFrame& frame) { return frame.kind == wire::FrameKind::kPython; });
  return out;
}

bool has(const SampledStack& stack, const std::string& prefix) {
  const auto frames = python_frames(stack);
  return std::any_of(frames.begin(), frames.end(),
                     [&](const SampledFrame& frame) { return frame.function.starts_with(prefix); });
}

TEST(PythonStacks, NeverMixWhatDidNotRunTogether) {
  const std::vector<std::string> pythons = testing::supported_pythons();
  if (pythons.empty()) GTEST_SKIP() << "no CPython 3.11 or 3.12 on this machine";
  for (const std::string& python : pythons) {
    SCOPED_TRACE(python);
    const Sampled sampled = testing::sample({python, script(PYTHON_BURNS)}, 600);
    if (!sampled.error.empty()) GTEST_SKIP() << sampled.error;
    // Functions here take microseconds. A stack that has both families was never on the thread.
    // Nothing is stopped while it is read, so it cannot be excluded: 0 to 2 % were measured on an idle machine.
    const std::size_t mixed =
        sampled.count([](const SampledStack& stack) { return has(stack, "left_") && has(stack, "right_"); });
    EXPECT_LE(mixed * 20, sampled.stacks.size()) << sampled.describe();
    // Each kind of call was seen, with the right callers.
    const auto seen = [&](const std::vector<std::string>& wanted) {
      return sampled.count([&](const SampledStack& stack) {
        std::vector<std::string> names;
        for (const SampledFrame& frame : python_frames(stack)) names.push_back(frame.function);
        return std::search(names.begin(), names.end(), wanted.begin(), wanted.end()) != names.end();
      });
    };
    EXPECT_GT(seen({"left_inner", "left_key", "left_outer", "burn", "deep", "deep"}), 0u) << sampled.describe();
    EXPECT_GT(seen({"right_inner", "right_generator", "right_outer", "burn", "deep"}), 0u) << sampled.describe();
    EXPECT_GT(seen({"deep", "<module>"}), 0u) << sampled.describe();
    EXPECT_GT(sampled.stats.python_samples, 0u);
    EXPECT_EQ(sampled.stats.python_processes_failed, 0u);
  }
}

TEST(PythonStacks, CanBeSwitchedOff) {
  const std::vector<std::string> pythons = testing::supported_pythons();
  if (pythons.empty()) GTEST_SKIP() << "no CPython 3.11 or 3.12 on this machine";
  const Sampled sampled = testing::sample({pythons.front(), script(PYTHON_BURNS)}, 100, {.hz = 997, .python = false});
  if (!sampled.error.empty()) GTEST_SKIP() << sampled.error;
  EXPECT_EQ(sampled.count([](const SampledStack& stack) { return !python_frames(stack).empty(); }), 0u);
  EXPECT_EQ(sampled.stats.python_samples + sampled.stats.python_failed, 0u);
}

// Entries of a location table: 0x80 | form << 3 | units - 1, then the form's bytes.
TEST(PythonCode, FindsTheLineOfAnInstruction) {
  const std::vector<std::uint8_t> table{
      0x80 | 13 << 3 | 1, 2 << 1,                  // 2 units, no columns, line + 2
      0x80 | 0 << 3 | 0,  0x00,                    // 1 unit, short form, same line
      0x80 | 11 << 3 | 2, 0x00,       0x00,        // 3 units, one line, line + 1
      0x80 | 15 << 3 | 0,                          // 1 unit without a line
      0x80 | 14 << 3 | 0, 3 << 1 | 1, 0,    0, 0,  // 1 unit, long form, line - 3
  };
  const std::vector<std::int32_t> expected{12, 12, 12, 13, 13, 13, 10, 10};
  for (std::size_t unit = 0; unit < expected.size(); ++unit)
    EXPECT_EQ(line_in_table(table, 10, unit), expected[unit]) << unit;
  EXPECT_EQ(line_in_table(table, 10, 1000), 10);
  EXPECT_EQ(line_in_table({}, 10, 0), 10);
  EXPECT_EQ(line_in_table({0x80 | 14 << 3, 0xff}, 10, 0), 10);
}

TEST(PythonLayout, KnowsTwoVersions) {
  EXPECT_NE(wire::python_layout(0x030b02f0), nullptr);
  EXPECT_NE(wire::python_layout(0x030c01f0), nullptr);
  EXPECT_EQ(wire::python_layout(0x030a0df0), nullptr);
  EXPECT_EQ(wire::python_layout(0x030d00f0), nullptr);
}

// The table that 3.13 and later have at the begin of their runtime, with its own index in each word: the members
// counted in _Py_DebugOffsets of 3.13.0 and of 3.14.
TEST(PythonLayout, IsReadFromTheInterpretersOwnTable) {
  std::uint64_t words[wire::kPythonOffsetWords];
  for (std::uint32_t i = 0; i < wire::kPythonOffsetWords; ++i) words[i] = i;
  words[1] = 0x030d00f0;
  words[2] = 0;
  words[45] = 8;  // pyobject.ob_type
  wire::PythonLayout layout{};
  ASSERT_TRUE(wire::layout_from_offsets(words, &layout));
  EXPECT_FALSE(layout.has_cframe);
  EXPECT_EQ(layout.runtime_interpreters, 5);
  EXPECT_EQ(layout.interpreter_next, 8);
  EXPECT_EQ(layout.thread_interpreter, 22);
  EXPECT_EQ(layout.thread_cframe, 23);  // current_frame
  EXPECT_EQ(layout.frame_owner, 33);
  EXPECT_EQ(layout.code_name, 37);  // qualname
  EXPECT_EQ(layout.code_instructions, 43);

  EXPECT_FALSE((words[1] = 0x030f00f0, wire::layout_from_offsets(words, &layout)));
  words[1] = 0x030e00f0;
  EXPECT_FALSE(wire::layout_from_offsets(words, &layout));  // ob_type is elsewhere in this one
  words[51] = 8;
  ASSERT_TRUE(wire::layout_from_offsets(words, &layout));
  EXPECT_EQ(layout.thread_cframe, 26);
  EXPECT_EQ(layout.frame_instruction, 34);
  EXPECT_EQ(layout.code_instructions, 48);
  words[2] = 1;
  EXPECT_FALSE(wire::layout_from_offsets(words, &layout));  // without a GIL everything is different
}

}  // namespace
}  // namespace llmprof::host
