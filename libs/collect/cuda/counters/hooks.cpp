#include "collect/cuda/counters/hooks.h"

#include "collect/cuda/counters/windows.h"
#include "collect/cuda/driver.h"
#include "collect/names.h"

namespace llmprof::collect::counters {

constinit std::atomic<std::uint32_t> armed{0};

namespace {

constinit Plan plan{};
constinit std::atomic<std::int32_t> captures{0};     // that a thread has called for
constinit std::atomic<std::int32_t> let_through{0};  // of these, those that have been let through

void decrease(std::atomic<std::int32_t>& count) {
  std::int32_t open = count.load(std::memory_order_relaxed);
  while (open > 0 && !count.compare_exchange_weak(open, open - 1, std::memory_order_seq_cst)) {
  }
}

}  // namespace

void skip(const char* why, std::uint64_t count) {
  count_loss_about(wire::LossKind::kCountersSkipped, count, intern(why));
}

void disarm(std::uint32_t what) { armed.fetch_and(~what, std::memory_order_relaxed); }

bool start() {
  if (g.settings.counters == 0) return true;
  char why[160];
  if (!read_plan(g.settings.folder, &plan, why)) {
    skip(why);
    note("counters", "%s", why);
    return true;
  }
  std::uint32_t what = 0;
  if (plan.method == Method::kRange) {
    start_range_windows(plan);
    what |= kRanges;
  }
  if (plan.method == Method::kKernel) {
    start_kernel_windows(plan);
    what |= kKernels;
  }
  if (plan.stalls != Stalls::kOff) {
    start_stall_sampling(plan);
    what |= kStalls;
    // While stalls are sampled, CUPTI refuses to switch records of kernels on again (CUPTI_ERROR_NOT_COMPATIBLE).
    if (g.settings.graphs == kGraphsSampled) g.settings.graphs = kGraphsLaunch;
  }
  armed.store(what, std::memory_order_release);
  if (plan.stalls != Stalls::kOnly) return true;
  note("counters", "kernels and graphs were not recorded: stalls were asked for instead of them.");
  return false;
}

bool replays_kernels() { return plan.method == Method::kKernel && plan.replay; }

void tell_range_opens(wire::StringId name, std::uint32_t domain, int level) { range_window_opens(name, domain, level); }
void tell_range_closes(std::uint32_t domain, int level) { range_window_closes(domain, level); }

void tell_launch_begins(const cupti::CallbackData& data, wire::LaunchOp op) {
  if (is_armed(kStalls)) stall_launch_begins(data.context);
  if (is_armed(kRanges)) launch_in_window(data, op);
  if (is_armed(kRanges) && op == wire::LaunchOp::kGraph) graph_window_begins(data);
  if (is_armed(kKernels) && op == wire::LaunchOp::kKernel) kernel_window_begins(data);
}

void tell_launch_ended(const cupti::CallbackData& data, wire::LaunchOp op) {
  if (is_armed(kRanges) && op == wire::LaunchOp::kGraph) graph_window_ended();
  if (is_armed(kKernels) && op == wire::LaunchOp::kKernel) kernel_window_ended(data);
}

// First it is known, then who is in a profiler is waited for: who comes later sees it.
void capture_begins() {
  captures.fetch_add(1, std::memory_order_seq_cst);
  if (is_armed(kRanges)) range_capture_begins();
  if (is_armed(kKernels)) kernel_capture_begins();
  if (is_armed(kStalls)) stall_capture_begins();
  let_through.fetch_add(1, std::memory_order_seq_cst);
}

void capture_ended() {
  decrease(let_through);
  decrease(captures);
}

bool capture_has_begun() { return let_through.load(std::memory_order_seq_cst) > 0; }

void await_device() {
  if (!capture_has_begun()) wait_for_device();
}

bool capture_is_open() { return captures.load(std::memory_order_seq_cst) > 0; }

void context_created(void* context) {
  if (is_armed(kStalls)) stall_context_created(context);
}

void context_ends(void* context) {
  if (is_armed(kRanges)) range_context_ends(context);
  if (is_armed(kKernels)) kernel_context_ends(context);
  if (is_armed(kStalls)) stall_context_ends(context);
}

void module_loaded(const pc::Module& code) {
  if (is_armed(kStalls)) stall_module_loaded(code);
}

void look(bool idle) {
  if (is_armed(kRanges)) look_at_range_windows(idle);
  if (is_armed(kStalls)) look_at_stalls();
}

void finish() {
  if (is_armed(kRanges)) finish_range_windows();
  if (is_armed(kKernels)) finish_kernel_windows();
  disarm(kRanges | kKernels);
}

void finish_last() {
  if (is_armed(kStalls)) finish_stall_sampling();
  disarm(kStalls);
}

}  // namespace llmprof::collect::counters
