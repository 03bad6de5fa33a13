#include "in_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "collect/nvtx_abi.h"
#include "collect/stress_point.h"
#include "wire/collector_v1.h"

extern "C" int InitializeInjectionNvtx2(llmprof::collect::nvtx::GetExportTable get_export_table);

namespace llmprof::collect {

void stress_point() {
  thread_local std::uint32_t random = 1;
  random = random * 1664525u + 1013904223u;
  const std::uint32_t turns = (random >> 16) % 16384;  // up to some microseconds: as long as a buffer takes to fill
  for (std::uint32_t i = 0; i < turns; ++i) asm volatile("" ::: "memory");
}

}  // namespace llmprof::collect

namespace llmprof::stress {
namespace {

namespace nvtx = collect::nvtx;

nvtx::Function core[nvtx::kCoreSize], core2[nvtx::kCore2Size];
nvtx::Function* core_slots[nvtx::kCoreSize];
nvtx::Function* core2_slots[nvtx::kCore2Size];
const llmprof_collector_table* collector = nullptr;

int get_table(nvtx::Module module, nvtx::FunctionTable* table, unsigned int* size) {
  for (unsigned i = 0; i < nvtx::kCoreSize; ++i) core_slots[i] = &core[i];
  for (unsigned i = 0; i < nvtx::kCore2Size; ++i) core2_slots[i] = &core2[i];
  *table = module == nvtx::kCore ? core_slots : core2_slots;
  *size = module == nvtx::kCore ? unsigned{nvtx::kCoreSize} : unsigned{nvtx::kCore2Size};
  return 1;
}

const void* get_export_table(std::uint32_t) {
  static const nvtx::CallbackTable callbacks{sizeof(callbacks), get_table};
  return &callbacks;
}

template <class Result, class... Arguments>
Result call(nvtx::Function function, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

nvtx::EventAttributes event(const char* name) {
  nvtx::EventAttributes attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  attributes.version = 3;
  attributes.size = sizeof(attributes);
  attributes.message_type = nvtx::kAscii;
  attributes.message.ascii = name;
  return attributes;
}

}  // namespace

std::vector<collect::testing::Log> record(const Settings& settings, const std::function<int()>& body) {
  const collect::testing::CaptureFolder folder;
  std::fflush(nullptr);  // else the child would say it again
  const pid_t child = fork();
  if (child == 0) {
    alarm(static_cast<unsigned>(120 * scale()));  // a hang is a failure
    setenv("LLMPROF_CAPTURE_DIR", folder.path().c_str(), 1);
    for (const auto& [name, value] : settings) setenv(name, value.c_str(), 1);
    std::exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit status");
  return collect::testing::read_folder(folder.path());
}

void connect() {
  if (InitializeInjectionNvtx2(get_export_table) != 1) std::abort();
  collector = llmprof_collector_v1();
  if (collector == nullptr) std::abort();
}

void push(const char* name) { call<int>(core[nvtx::kRangePushA], name); }
void pop() { call<int>(core[nvtx::kRangePop]); }

void mark(const char* name, std::uint64_t payload) {
  nvtx::EventAttributes attributes = event(name);
  attributes.payload_type = nvtx::kUint64;
  attributes.payload.u64 = payload;
  call<void>(core[nvtx::kMarkEx], static_cast<const nvtx::EventAttributes*>(&attributes));
}

std::uint64_t start(const char* name) { return call<nvtx::RangeId>(core[nvtx::kRangeStartA], name); }
void end(std::uint64_t id) { call<void>(core[nvtx::kRangeEnd], nvtx::RangeId{id}); }

void gemm(std::int64_t m) {
  wire::GemmRecord record{};
  record.m = m;
  collector->gemm_begin(&record);
  collector->gemm_end(&record);
}

void name_category(std::uint32_t category, const char* name) { call<void>(core[nvtx::kNameCategoryA], category, name); }
void create_domain(const char* name) { call<nvtx::Domain>(core2[nvtx::kDomainCreateA], name); }
void stop() { collector->end(); }

int scale() {
  const char* text = std::getenv("LLMPROF_STRESS");
  const int value = text != nullptr ? std::atoi(text) : 1;
  return value > 0 ? value : 1;
}

}  // namespace llmprof::stress
