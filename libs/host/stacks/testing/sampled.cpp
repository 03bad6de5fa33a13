#include "host/stacks/testing/sampled.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/file.h"
#include "wire/decode.h"

namespace llmprof::host::testing {
namespace {

// A process that waits for a byte and then becomes the program.
struct Child {
  pid_t pid = -1;
  int go = -1;
};

Child start(const std::vector<std::string>& arguments) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return {};
  std::vector<char*> values;
  for (const std::string& argument : arguments) values.push_back(const_cast<char*>(argument.c_str()));
  values.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);
    char byte = 0;
    if (::read(pipe_ends[0], &byte, 1) == 1) ::execv(values[0], values.data());
    ::_exit(127);
  }
  ::setpgid(pid, pid);
  ::close(pipe_ends[0]);
  return {pid, pipe_ends[1]};
}

void drain_until(StackSampler& sampler, pid_t pid, std::uint64_t enough) {
  std::vector<pollfd> polled;
  for (const int descriptor : sampler.descriptors()) polled.push_back({descriptor, POLLIN, 0});
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (sampler.stats().samples < enough && std::chrono::steady_clock::now() < end) {
    ::poll(polled.data(), polled.size(), 50);
    sampler.drain();
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == pid) break;
  }
  sampler.drain();
}

struct Tables {
  std::map<wire::StringId, std::string> names;
  std::map<std::uint32_t, wire::FrameRecord> frames;
  std::map<std::uint32_t, wire::StackRecord> stacks;

  SampledStack stack_of(const wire::SampleRecord& sample) const {
    SampledStack out{.pid = sample.pid, .tid = sample.tid, .ts_ns = sample.ts_ns, .weight_ns = sample.weight_ns};
    out.truncated = sample.truncated != 0;
    for (std::uint32_t id = sample.stack; id != 0; id = stacks.at(id).parent) {
      const wire::FrameRecord& frame = frames.at(stacks.at(id).frame);
      out.frames.push_back({frame.function == 0 ? "" : names.at(frame.function),
                            frame.file == 0 ? "" : names.at(frame.file), frame.line, frame.kind});
    }
    return out;
  }
};

void take(const wire::Record& record, Tables& tables, Sampled& out) {
  if (record.kind == wire::RecordKind::kFrame) tables.frames[record.frame.id] = record.frame;
  if (record.kind == wire::RecordKind::kStack) tables.stacks[record.stack.id] = record.stack;
  if (record.kind == wire::RecordKind::kSample) out.stacks.push_back(tables.stack_of(record.sample));
}

void read_log(const std::string& path, Sampled& out) {
  Tables tables;
  const std::string bytes = base::read_file(path, 1 << 28).value();
  wire::BlockReader blocks({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()},
                           sizeof(wire::FileHeader));
  std::vector<wire::Record> records(wire::kMaxSectionRecords);
  for (wire::Step step = blocks.next(); step.kind == wire::StepKind::kBlock; step = blocks.next()) {
    wire::SectionReader sections(step.block);
    for (wire::Section section; sections.next(&section);) {
      if (section.kind == 0) {
        wire::StringReader strings(section);
        for (wire::StringDefinition text; strings.next(&text);)
          tables.names[text.id] = std::string(text.text, text.length);
      } else if (wire::decode_records(section, records.data())) {
        for (std::size_t i = 0; i < section.count; ++i) take(records[i], tables, out);
      }
    }
  }
}

}  // namespace

std::vector<std::string> SampledStack::functions() const {
  std::vector<std::string> out;
  for (const SampledFrame& frame : frames) out.push_back(frame.function);
  return out;
}

bool SampledStack::has_chain(const std::vector<std::string>& wanted) const {
  const std::vector<std::string> all = functions();
  return std::search(all.begin(), all.end(), wanted.begin(), wanted.end()) != all.end();
}

std::size_t Sampled::count(const std::function<bool(const SampledStack&)>& what) const {
  return static_cast<std::size_t>(std::count_if(stacks.begin(), stacks.end(), what));
}

std::string Sampled::describe() const {
  std::map<std::string, int> seen;
  for (const SampledStack& stack : stacks) {
    std::string line;
    for (const SampledFrame& frame : stack.frames)
      line += (line.empty() ? "" : " < ") + frame.function + (frame.line > 0 ? ":" + std::to_string(frame.line) : "");
    ++seen[line + (stack.truncated ? " (truncated)" : "")];
  }
  std::string out;
  for (const auto& [line, times] : seen) out += std::to_string(times) + " x " + line + "\n";
  return out;
}

Sampled sample(const std::vector<std::string>& arguments, std::uint64_t enough, StackOptions options) {
  options.cpu_share = 1000;  // every sample counts here
  static int number = 0;
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("llmprof-stacks-" + std::to_string(::getpid()) + "-" + std::to_string(number++)))
                               .string();
  Sampled out;
  const Child child = start(arguments);
  out.root = static_cast<std::uint32_t>(child.pid);
  {
    HostLog log = std::move(HostLog::create(path).value());
    auto sampler = StackSampler::open(child.pid, options, log);
    if (!sampler) {
      out.error = sampler.error().message;
      out.hint = sampler.error().hint;
    } else {
      if (::write(child.go, "g", 1) == 1) drain_until(**sampler, child.pid, enough);
      out.stats = (*sampler)->stats();
    }
    ::close(child.go);
    ::kill(-child.pid, SIGKILL);
    ::kill(child.pid, SIGKILL);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  read_log(path, out);
  std::filesystem::remove(path);
  return out;
}

}  // namespace llmprof::host::testing
