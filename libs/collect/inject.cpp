// The exports of libllmprof_inject.so: the two entry points of NVIDIA's injection interfaces, and the table for
// libllmprof_blas.so.

#include "collect/clock.h"
#include "collect/cuda/session.h"
#include "collect/definitions.h"
#include "collect/event.h"
#include "collect/lifecycle.h"
#include "collect/names.h"
#include "collect/nvtx.h"
#include "wire/collector_v1.h"

namespace llmprof::collect {
namespace {

void gemm_begin(wire::GemmRecord* record) {
  tl.gemm = record;
  record->begin_ns = now_ns();
}

void gemm_end(wire::GemmRecord* record) {
  record->end_ns = now_ns();
  tl.gemm = nullptr;
  record_event([&](wire::Record* slot, Thread*) {
    slot->kind = wire::RecordKind::kGemm;
    slot->gemm = *record;
  });
}

// A call that was left by an exception or longjmp leaves its pointer behind: it then lies below the stack pointer.
const wire::GemmRecord* current_gemm() {
  return static_cast<const void*>(tl.gemm) > __builtin_frame_address(0) ? tl.gemm : nullptr;
}

void note_library(const char* path, int hooked) { define_library(intern(path), static_cast<std::uint8_t>(hooked)); }

void count_loss_by_number(std::uint16_t kind, std::uint64_t count) {
  if (kind < kLossKinds) count_loss(static_cast<wire::LossKind>(kind), count);
}

wire::DefinitionId define_from_table(const wire::Record* record) { return define(*record); }

void record_from_table(const wire::Record* record) {
  record_event([&](wire::Record* slot, Thread*) { *slot = *record; });
}

constexpr llmprof_collector_table kTable = {sizeof(llmprof_collector_table),
                                            1,
                                            now_ns,
                                            intern,
                                            gemm_begin,
                                            gemm_end,
                                            current_gemm,
                                            note_library,
                                            count_loss_by_number,
                                            start_now,
                                            end_recording,
                                            define_from_table,
                                            record_from_table,
                                            python_begin,
                                            python_push,
                                            python_pop,
                                            flush_recording,
                                            leave_recording};

}  // namespace
}  // namespace llmprof::collect

#define LLMPROF_EXPORT extern "C" [[gnu::visibility("default")]]

LLMPROF_EXPORT int InitializeInjectionNvtx2(llmprof::collect::nvtx::GetExportTable get_export_table);
LLMPROF_EXPORT int InitializeInjectionNvtx2(llmprof::collect::nvtx::GetExportTable get_export_table) {
  return llmprof::collect::attach_nvtx(get_export_table);
}

// Called by the CUDA driver inside cuInit.
LLMPROF_EXPORT int InitializeInjection();
LLMPROF_EXPORT int InitializeInjection() {
  using namespace llmprof::collect;
  if (enabled()) {
    start_now();  // first: a forked child that begins with CUDA is one of its own
    if (g.cuda_seen.exchange(1) == 0) start_gpu();
  }
  return 1;
}

LLMPROF_EXPORT const llmprof_collector_table* llmprof_collector_v1() {
  return llmprof::collect::enabled() ? &llmprof::collect::kTable : nullptr;
}
