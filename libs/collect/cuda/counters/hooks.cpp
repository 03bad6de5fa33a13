#include "collect/cuda/counters/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/cuda/counters/plan.h"
#include "collect/cuda/counters/windows.h"
#include "collect/cuda/driver.h"
#include "collect/names.h"
#include "collect/os.h"
#include "collect/writer/glob.h"

namespace llmprof::collect::counters {

constinit std::atomic<std::uint32_t> armed{0};

namespace {

constinit Plan the_plan{};
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
  if (!read_plan(g.settings.folder, &the_plan, why)) {
    skip(why);
    note("counters", "%s", why);
    return true;
  }
  std::uint32_t what = 0;
  if (the_plan.method == Method::kRange) {
    start_range_windows(the_plan);
    what |= kRanges;
  }
  if (the_plan.method == Method::kKernel) {
    start_kernel_windows(the_plan);
    what |= kKernels;
  }
  if (the_plan.stalls != Stalls::kOff) {
    start_stall_sampling(the_plan);
    what |= kStalls;
    // While stalls are sampled, CUPTI refuses to switch records of kernels on again (CUPTI_ERROR_NOT_COMPATIBLE).
    if (g.settings.graphs == kGraphsSampled) g.settings.graphs = kGraphsLaunch;
  }
  armed.store(what, std::memory_order_release);
  if (the_plan.stalls != Stalls::kOnly) return true;
  note("counters", "kernels and graphs were not recorded: stalls were asked for instead of them.");
  return false;
}

bool replays_kernels() { return the_plan.method == Method::kKernel && the_plan.replay; }

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

namespace {

constexpr char kHeader[] = "llmprof counters 1";
constexpr off_t kMostBytes = 1 << 20;

void add(List* list, const char* word, const char* name = nullptr) {
  if (list->count == List::kMost) return;
  list->words[list->count] = word;
  list->names[list->count++] = name;
}

// "word rest": the rest, if the line begins with `word`; else null.
const char* after(const char* line, const char* word) {
  const std::size_t length = strlen(word);
  if (strncmp(line, word, length) != 0 || line[length] != ' ') return nullptr;
  return line + length + 1;
}

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  for (; *text >= '0' && *text <= '9' && value < (1ull << 59); ++text)
    value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  return value;
}

void take_line(const char* line, Plan* plan) {
  if (const char* rest = after(line, "method")) {
    plan->method = strcmp(rest, "range") == 0    ? Method::kRange
                   : strcmp(rest, "kernel") == 0 ? Method::kKernel
                                                 : Method::kNone;
  } else if (const char* stalls = after(line, "stalls")) {
    plan->stalls = strcmp(stalls, "with") == 0   ? Stalls::kWith
                   : strcmp(stalls, "only") == 0 ? Stalls::kOnly
                                                 : Stalls::kOff;
  } else if (const char* ppm = after(line, "budget_ppm")) {
    plan->budget_ppm = number(ppm);
  } else if (const char* replay = after(line, "replay")) {
    plan->replay = number(replay) != 0;
  } else if (const char* range = after(line, "range")) {
    add(&plan->ranges, range);
  } else if (const char* name = after(line, "named")) {
    plan->named = name;
  } else if (const char* kernel = after(line, "kernel")) {
    add(&plan->kernels, kernel, plan->named);
  }
}

// Private and writable: lines become words in place, and the file stays as it is. One byte more than the file is
// mapped, so the last line ends in a zero, too.
char* map_file(const char* path, std::size_t* bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat status;
  char* text = nullptr;
  if (fstat(file, &status) == 0 && status.st_size > 0 && status.st_size < kMostBytes) {
    *bytes = static_cast<std::size_t>(status.st_size);
    text = static_cast<char*>(map_memory(*bytes + 1));
    if (text != nullptr && pread(file, text, *bytes, 0) != status.st_size) text[0] = '\0';
  } else {
    errno = status.st_size == 0 ? ENODATA : EFBIG;
  }
  close(file);
  return text;
}

}  // namespace

bool read_plan(const char* folder, Plan* plan, char (&why)[160]) {
  char path[4096];
  const int length = snprintf(path, sizeof(path), "%s/counters.plan", folder);
  std::size_t bytes = 0;
  char* text = length > 0 && static_cast<std::size_t>(length) < sizeof(path) ? map_file(path, &bytes) : nullptr;
  if (text == nullptr) {
    snprintf(why, sizeof(why), "counters.plan cannot be read (error %d): nothing is counted.", errno);
    return false;
  }
  *plan = Plan{};
  plan->text = text;
  plan->text_bytes = bytes;
  bool first = true;
  for (char* line = text; line < text + bytes;) {
    char* end = strchr(line, '\n');
    if (end == nullptr) end = line + strlen(line);
    *end = '\0';
    if (first && strcmp(line, kHeader) != 0) {
      snprintf(why, sizeof(why), "counters.plan is not of this version: nothing is counted.");
      return false;
    }
    if (!first) take_line(line, plan);
    first = false;
    line = end + 1;
  }
  return true;
}

void metrics_for(const Plan& plan, const char* chip, List* metrics) {
  metrics->count = 0;
  const std::size_t length = strlen(chip);
  for (const char* line = plan.text; line < plan.text + plan.text_bytes; line += strlen(line) + 1) {
    const char* of = after(line, "metric");
    if (of != nullptr && strncmp(of, chip, length) == 0 && of[length] == ' ') add(metrics, of + length + 1);
  }
}

bool matches(const char* pattern, const char* text) { return collect::matches(pattern, strlen(pattern), text, '?'); }

bool matches(const List& patterns, const char* name) {
  for (std::size_t i = 0; i < patterns.count; ++i) {
    if (matches(patterns.words[i], name)) return true;
  }
  return false;
}

}  // namespace llmprof::collect::counters
