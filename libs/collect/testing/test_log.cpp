#include "collect/testing/test_log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "wire/decode.h"

extern char** environ;

namespace llmprof::collect::testing {
namespace {

void check_names(const Log& log, const wire::Record& record, std::size_t* undefined) {
  const wire::FieldList list = wire::fields_of(static_cast<std::uint64_t>(record.kind));
  for (std::size_t f = 0; f < list.count; ++f) {
    if (list.fields[f].role != wire::FieldRole::kName) continue;
    const auto id = static_cast<wire::StringId>(wire::load_field(record, list.fields[f]));
    if (id != 0 && log.names.count(id) == 0) ++*undefined;
  }
}

void read_section(const wire::Section& section, Log* log) {
  std::vector<wire::Record> records(wire::kMaxSectionRecords);
  if (section.kind == 0) {
    wire::StringReader strings(section);
    wire::StringDefinition definition;
    while (strings.next(&definition)) log->names[definition.id] = std::string(definition.text, definition.length);
    return;
  }
  if (!wire::decode_records(section, records.data())) return;
  for (std::uint32_t i = 0; i < section.count; ++i) {
    check_names(*log, records[i], &log->undefined_names);
    log->entries.push_back({section.thread, records[i]});
  }
}

std::vector<std::string> environment_of(const CaptureFolder& folder, const Launch& launch) {
  std::vector<std::string> result = launch.environment;  // first: the first of a name counts
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (text.rfind("LD_PRELOAD=", 0) != 0 && text.rfind("LLMPROF_", 0) != 0) result.push_back(text);
  }
  const std::string blas = library_folder() + "/libllmprof_blas.so";
  std::string preload = blas;
  if (!launch.preload.empty())
    preload = launch.preload_after ? blas + ":" + launch.preload : launch.preload + ":" + blas;
  result.push_back("LD_PRELOAD=" + preload);
  result.push_back("NVTX_INJECTION64_PATH=" + library_folder() + "/libllmprof_inject.so");
  result.push_back("LLMPROF_CAPTURE_DIR=" + folder.path());
  result.push_back("ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0");  // sanitized: we stand before it
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace

std::vector<wire::RangeRecord> Log::ranges() const {
  std::vector<wire::RangeRecord> result;
  for (const Entry& entry : entries) {
    if (entry.record.kind == wire::RecordKind::kRange) result.push_back(entry.record.range);
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.ts_ns < b.ts_ns; });
  return result;
}

std::vector<wire::RangeRecord> Log::ranges(std::uint32_t thread) const {
  std::vector<wire::RangeRecord> result;
  for (const Entry& entry : entries) {
    if (entry.record.kind == wire::RecordKind::kRange && entry.thread == thread) result.push_back(entry.record.range);
  }
  return result;
}

std::vector<wire::GemmRecord> Log::gemms() const {
  std::vector<wire::GemmRecord> result;
  for (const Entry& entry : entries) {
    if (entry.record.kind == wire::RecordKind::kGemm) result.push_back(entry.record.gemm);
  }
  return result;
}

std::uint64_t Log::lost(wire::LossKind kind) const {
  std::uint64_t result = 0;
  for (const Entry& entry : entries) {
    if (entry.record.kind == wire::RecordKind::kLoss && entry.record.loss.kind == kind)
      result += entry.record.loss.count;
  }
  return result;
}

std::size_t Log::count(wire::RecordKind kind) const {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.record.kind == kind; }));
}

bool Log::ended() const {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.record.kind == wire::RecordKind::kProcess && entry.record.process.ended != 0;
  });
}

std::string Log::name(wire::StringId id) const {
  const auto found = names.find(id);
  return found != names.end() ? found->second : "";
}

std::uint32_t Log::domain(const std::string& wanted) const {
  for (const Entry& entry : entries) {
    if (entry.record.kind == wire::RecordKind::kDomain && name(entry.record.domain.name) == wanted) {
      return entry.record.domain.domain;
    }
  }
  return 0;
}

Log read_log(const std::string& path) {
  Log log;
  log.path = path;
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const wire::Bytes bytes{reinterpret_cast<const std::uint8_t*>(content.data()), content.size()};
  if (wire::read_file_header(bytes, &log.header) != wire::HeaderStatus::kOk) {
    log.damaged_bytes = bytes.size + 1;
    return log;
  }
  wire::BlockReader blocks(bytes, log.header.header_bytes);
  for (wire::Step step = blocks.next(); step.kind != wire::StepKind::kEnd; step = blocks.next()) {
    if (step.kind == wire::StepKind::kDamage) log.damaged_bytes += step.bytes;
    if (step.kind == wire::StepKind::kTornTail) log.torn_bytes += step.bytes;
    if (step.kind != wire::StepKind::kBlock) continue;
    log.missing_blocks += step.missing_blocks;
    wire::SectionReader sections(step.block);
    wire::Section section;
    while (sections.next(&section)) read_section(section, &log);
    if (!sections.complete()) log.damaged_bytes += step.bytes;
  }
  return log;
}

std::vector<Log> read_folder(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".log") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Log> logs;
  for (const std::string& path : paths) logs.push_back(read_log(path));
  return logs;
}

CaptureFolder::CaptureFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "llmprof-collect-XXXXXX").string();
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}
CaptureFolder::~CaptureFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int run(const CaptureFolder& folder, const Launch& launch, std::string* output) {
  const std::vector<std::string> environment = environment_of(folder, launch);
  std::vector<char*> argv = pointers(launch.arguments), envp = pointers(environment);
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    if (output != nullptr) dup2(out[1], 1);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  if (launch.kill_after_ms >= 0) {
    usleep(static_cast<useconds_t>(launch.kill_after_ms) * 1000);
    kill(child, SIGKILL);
  }
  char buffer[4096];
  for (ssize_t got = 1; output != nullptr && got > 0;) {
    got = read(out[0], buffer, sizeof(buffer));
    if (got > 0) output->append(buffer, static_cast<std::size_t>(got));
  }
  close(out[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

std::string library_folder() { return LLMPROF_TEST_LIBRARIES; }
std::string client(const std::string& name) { return std::string(LLMPROF_TEST_CLIENTS) + "/collect_client_" + name; }

}  // namespace llmprof::collect::testing
