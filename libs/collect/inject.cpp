// The exports of libllmprof_inject.so: the two entry points of NVIDIA's injection interfaces, and the table for
// libllmprof_blas.so.

#include <string.h>

#include "collect/cuda/counters/hooks.h"
#include "collect/cuda/gpu.h"
#include "collect/event.h"
#include "collect/lifecycle.h"
#include "collect/names.h"
#include "collect/nvtx_abi.h"
#include "collect/os.h"
#include "wire/collector_v1.h"

namespace llmprof::collect {

// The NVTX v3 listener: annotations of the program become range records.

// Puts our functions into the client's tables. Called once per copy of NVTX in the process.
// 0: recording is off or the client is not understood; it then makes its calls no-ops.
int attach_nvtx(nvtx::GetExportTable get_export_table);

// Of llmprof_collector_table.
void python_begin(void* (*pointer_of)(void*), void (*keep)(void*), void* none);
void* python_push(void* number, void* unused);
void* python_pop(void* number, void* unused);
void* python_mark(void* number, void* unused);

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
                                            leave_recording,
                                            python_mark};

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

namespace llmprof::collect {

namespace {

using nvtx::EventAttributes;
using wire::LossKind;
using wire::RangeOp;

// Domain and string handles are our numbers in the shape of pointers, so they stay good in a forked child.
std::uint32_t number_of(nvtx::Domain domain) {
  const auto number = reinterpret_cast<std::uintptr_t>(domain);
  return number < kMaxDomains ? static_cast<std::uint32_t>(number) : 0;
}
wire::StringId registered(nvtx::String handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  const Shared* shared = g.shared.load(std::memory_order_acquire);
  const bool known = shared != nullptr && number < StringTable::kMaxNames &&
                     shared->strings.valid(static_cast<wire::StringId>(number));
  return known ? static_cast<wire::StringId>(number) : 0;
}

// The part of an event that its attributes give.
struct Description {
  wire::StringId name = 0;
  std::uint32_t category = 0;
  wire::PayloadType payload_type = wire::PayloadType::kNone;
  std::uint64_t payload = 0;
};

void read_payload(const EventAttributes& event, Description* out) {
  const auto set = [&](wire::PayloadType type, auto value) {
    static_assert(sizeof(value) == sizeof(out->payload));
    out->payload_type = type;
    memcpy(&out->payload, &value, sizeof(value));
  };
  switch (event.payload_type) {
    case nvtx::kUint64:
      return set(wire::PayloadType::kUnsigned, event.payload.u64);
    case nvtx::kInt64:
      return set(wire::PayloadType::kSigned, event.payload.i64);
    case nvtx::kDouble:
      return set(wire::PayloadType::kDouble, event.payload.f64);
    case nvtx::kUint32:
      return set(wire::PayloadType::kUnsigned, std::uint64_t{event.payload.u32});
    case nvtx::kInt32:
      return set(wire::PayloadType::kSigned, std::int64_t{event.payload.i32});
    case nvtx::kFloat:
      return set(wire::PayloadType::kDouble, static_cast<double>(event.payload.f32));
    default:
      return;
  }
}

wire::StringId read_message(Thread* thread, const EventAttributes& event) {
  switch (event.message_type) {
    case nvtx::kAscii:
      return intern_cached(thread, event.message.ascii);
    case nvtx::kUnicode:
      return intern_wide(event.message.unicode);
    case nvtx::kRegistered:
      return registered(event.message.registered);
    default:
      return 0;
  }
}

// `size` says how much of the structure the client's version has; nothing beyond it is read.
Description describe(Thread* thread, const EventAttributes* event) {
  Description result;
  if (event == nullptr) return result;
  const std::size_t size = event->size;
  if (size >= offsetof(EventAttributes, color_type)) result.category = event->category;
  if (size >= offsetof(EventAttributes, message_type)) read_payload(*event, &result);
  if (size >= sizeof(EventAttributes)) result.name = read_message(thread, *event);
  return result;
}
Description describe(Thread* thread, const char* name) { return {.name = intern_cached(thread, name)}; }
Description describe(Thread*, const wchar_t* name) { return {.name = intern_wide(name)}; }

void put(wire::Record* record, RangeOp op, std::uint32_t domain, const Description& what, std::uint16_t level) {
  record->kind = wire::RecordKind::kRange;
  record->range = {0, what.payload, 0, what.name, what.category, domain, op, what.payload_type, level};
}

template <class What>
void mark(std::uint32_t domain, What what) {
  record_event([&](wire::Record* record, Thread* thread) {
    put(record, RangeOp::kMark, domain, describe(thread, what), wire::kNoLevel);
    record->range.ts_ns = now_ns();
  });
}

// The time is read last when a range opens and first when it closes: our own cost stays outside.
template <class What>
int push(std::uint32_t domain, What what) {
  Thread* thread = enter();
  if (thread == nullptr) return nvtx::kNoPushPopTracking;
  const bool tracked = domain < kTrackedDomains;
  const int level = tracked ? thread->level[domain]++ : nvtx::kNoPushPopTracking;
  const Description description = describe(thread, what);
  if (counters::is_armed(counters::kRanges)) [[unlikely]] {
    leave();
    counters::range_opens(description.name, domain, level);
    if ((thread = enter()) == nullptr) return level;
  }
  if (wire::Record* record = reserve(thread)) {
    put(record, RangeOp::kPush, domain, description,
        tracked && level < wire::kNoLevel ? static_cast<std::uint16_t>(level) : wire::kNoLevel);
    record->range.correlation = thread->dropped;
    record->range.ts_ns = now_ns();
    commit(thread);
  }
  leave();
  return level;
}

int pop(std::uint32_t domain) {
  const std::uint64_t ts_ns = now_ns();
  Thread* thread = enter();
  if (thread == nullptr) return nvtx::kNoPushPopTracking;
  const bool tracked = domain < kTrackedDomains;
  if (tracked && thread->level[domain] == 0) {
    count_loss(LossKind::kUnbalancedPop);
    leave();
    return -1;
  }
  const int level = tracked ? --thread->level[domain] : nvtx::kNoPushPopTracking;
  if (wire::Record* record = reserve(thread)) {
    put(record, RangeOp::kPop, domain, {},
        tracked && level < wire::kNoLevel ? static_cast<std::uint16_t>(level) : wire::kNoLevel);
    record->range.correlation = thread->dropped;
    record->range.ts_ns = ts_ns;
    commit(thread);
  }
  leave();
  counters::range_closes(domain, level);
  return level;
}

// Ids are unique in the process: the thread's number and a count of its own.
template <class What>
nvtx::RangeId start(std::uint32_t domain, What what) {
  Thread* thread = enter();
  if (thread == nullptr) return 0;
  const nvtx::RangeId id = static_cast<nvtx::RangeId>(thread->number) << 32 | ++thread->ranges_started;
  if (wire::Record* record = reserve(thread)) {
    put(record, RangeOp::kStart, domain, describe(thread, what), wire::kNoLevel);
    record->range.correlation = id;
    record->range.ts_ns = now_ns();
    commit(thread);
  }
  leave();
  return id;
}

void end(std::uint32_t domain, nvtx::RangeId id) {
  const std::uint64_t ts_ns = now_ns();
  if (id == 0) return;  // its start was not recorded
  record_event([&](wire::Record* record, Thread*) {
    put(record, RangeOp::kEnd, domain, {}, wire::kNoLevel);
    record->range.correlation = id;
    record->range.ts_ns = ts_ns;
  });
}

void name_thread(std::uint32_t tid, wire::StringId name) {
  record_event([&](wire::Record* record, Thread*) {
    record->kind = wire::RecordKind::kThread;
    record->thread = {now_ns(), tid, name, 0};
  });
}

// The functions that clients call, in NVTX's shapes. `What`: attributes, or a name in one of the two character types.
wire::StringId intern_any(const char* text) { return intern(text); }
wire::StringId intern_any(const wchar_t* text) { return intern_wide(text); }

// What NVTX hands us back as its handles are our numbers.
template <class Handle>
Handle handle_of(std::uint32_t number) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number));
}

// What Python's functions need of the interpreter: PyLong_AsVoidPtr, Py_IncRef and None.
struct Python {
  void* (*pointer_of)(void*);
  void (*keep)(void*);
  void* none;
};
Python python;

struct PythonRange {
  nvtx::Domain domain;
  EventAttributes event;
};

void* none_again() {
  python.keep(python.none);
  return python.none;
}

struct Row {
  std::uint32_t callback;
  nvtx::Function function;
};
template <class Lambda>
nvtx::Function erase(Lambda lambda) {
  return reinterpret_cast<nvtx::Function>(+lambda);
}

// The functions of NVTX that take a name come in three: with attributes, with bytes, with wide characters.
template <class What>
constexpr auto mark_default = [](What what) { mark(0, what); };
template <class What>
constexpr auto start_default = [](What what) { return start(0, what); };
template <class What>
constexpr auto push_default = [](What what) { return push(0, what); };
template <class Char>
constexpr auto name_category =
    [](std::uint32_t category, const Char* name) { define_category(0, category, intern_any(name)); };
template <class Char>
constexpr auto name_os_thread = [](std::uint32_t tid, const Char* name) { name_thread(tid, intern_any(name)); };
template <class Char>
constexpr auto domain_category = [](nvtx::Domain domain, std::uint32_t category, const Char* name) {
  define_category(number_of(domain), category, intern_any(name));
};
template <class Char>
constexpr auto register_string =
    [](nvtx::Domain, const Char* text) { return handle_of<nvtx::String>(intern_any(text)); };
template <class Char>
constexpr auto domain_create =
    [](const Char* name) { return handle_of<nvtx::Domain>(define_domain(intern_any(name))); };

int fill(const nvtx::CallbackTable* callbacks, nvtx::Module module, const Row* rows, std::uint32_t size) {
  nvtx::FunctionTable table = nullptr;
  unsigned int offered = 0;
  if (callbacks->get_module_function_table(module, &table, &offered) == 0 || table == nullptr) return 0;
  if (offered < size) count_loss(LossKind::kNvtxTableTooSmall);
  for (std::uint32_t i = 0; i + 1 < size; ++i) {
    if (rows[i].callback < offered && table[rows[i].callback] != nullptr) *table[rows[i].callback] = rows[i].function;
  }
  return 1;
}

}  // namespace

int attach_nvtx(nvtx::GetExportTable get_export_table) {
  if (get_export_table == nullptr || !enabled()) return 0;
  const auto* callbacks = static_cast<const nvtx::CallbackTable*>(get_export_table(nvtx::kCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(*callbacks)) return 0;
  using Event = const EventAttributes*;
  const Row core[] = {
      {nvtx::kMarkEx, erase(mark_default<Event>)},
      {nvtx::kMarkA, erase(mark_default<const char*>)},
      {nvtx::kMarkW, erase(mark_default<const wchar_t*>)},
      {nvtx::kRangeStartEx, erase(start_default<Event>)},
      {nvtx::kRangeStartA, erase(start_default<const char*>)},
      {nvtx::kRangeStartW, erase(start_default<const wchar_t*>)},
      {nvtx::kRangeEnd, erase([](nvtx::RangeId id) { end(0, id); })},
      {nvtx::kRangePushEx, erase(push_default<Event>)},
      {nvtx::kRangePushA, erase(push_default<const char*>)},
      {nvtx::kRangePushW, erase(push_default<const wchar_t*>)},
      {nvtx::kRangePop, erase([] { return pop(0); })},
      {nvtx::kNameCategoryA, erase(name_category<char>)},
      {nvtx::kNameCategoryW, erase(name_category<wchar_t>)},
      {nvtx::kNameOsThreadA, erase(name_os_thread<char>)},
      {nvtx::kNameOsThreadW, erase(name_os_thread<wchar_t>)},
  };
  const Row core2[] = {
      {nvtx::kDomainMarkEx, erase([](nvtx::Domain domain, Event event) { mark(number_of(domain), event); })},
      {nvtx::kDomainRangeStartEx,
       erase([](nvtx::Domain domain, Event event) { return start(number_of(domain), event); })},
      {nvtx::kDomainRangeEnd, erase([](nvtx::Domain domain, nvtx::RangeId id) { end(number_of(domain), id); })},
      {nvtx::kDomainRangePushEx,
       erase([](nvtx::Domain domain, Event event) { return push(number_of(domain), event); })},
      {nvtx::kDomainRangePop, erase([](nvtx::Domain domain) { return pop(number_of(domain)); })},
      {nvtx::kDomainResourceCreate, erase([](nvtx::Domain, void*) -> void* { return nullptr; })},
      {nvtx::kDomainResourceDestroy, erase([](void*) {})},
      {nvtx::kDomainNameCategoryA, erase(domain_category<char>)},
      {nvtx::kDomainNameCategoryW, erase(domain_category<wchar_t>)},
      {nvtx::kDomainRegisterStringA, erase(register_string<char>)},
      {nvtx::kDomainRegisterStringW, erase(register_string<wchar_t>)},
      {nvtx::kDomainCreateA, erase(domain_create<char>)},
      {nvtx::kDomainCreateW, erase(domain_create<wchar_t>)},
      {nvtx::kDomainDestroy, erase([](nvtx::Domain) {})},
      {nvtx::kInitialize, erase([](const void*) {})},
  };
  static_assert(sizeof(core) / sizeof(Row) + 1 == nvtx::kCoreSize &&
                sizeof(core2) / sizeof(Row) + 1 == nvtx::kCore2Size);
  const int attached = fill(callbacks, nvtx::kCore, core, nvtx::kCoreSize);
  return fill(callbacks, nvtx::kCore2, core2, nvtx::kCore2Size) | attached;
}

// Before any of the functions is handed to the interpreter, under its lock.
void python_begin(void* (*pointer_of)(void*), void (*keep)(void*), void* none) { python = {pointer_of, keep, none}; }

void* python_push(void* number, void*) {
  const auto* range = static_cast<const PythonRange*>(python.pointer_of(number));
  push(number_of(range->domain), &range->event);
  return none_again();
}

void* python_pop(void* number, void*) {
  pop(number_of(static_cast<nvtx::Domain>(python.pointer_of(number))));
  return none_again();
}

void* python_mark(void* number, void*) {
  const auto* event = static_cast<const PythonRange*>(python.pointer_of(number));
  mark(number_of(event->domain), &event->event);
  return none_again();
}

}  // namespace llmprof::collect
