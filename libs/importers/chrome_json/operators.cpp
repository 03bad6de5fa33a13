#include "importers/chrome_json/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

namespace llmprof::importers::chrome_json {
namespace {

template <class Integer>
std::optional<Integer> known(std::int64_t value) {
  return value == kUnknown ? std::nullopt : std::optional<Integer>(value);
}

std::int64_t hash_of(trace::Name name, const Arguments& args) {
  std::uint64_t mixed = name.id;
  for (const std::string_view text : {args.dims, args.types, args.strides, args.concrete}) {
    mixed = (mixed ^ std::hash<std::string_view>{}(text)) * 0x9E3779B97F4A7C15U;
    mixed ^= mixed >> 29;
  }
  return static_cast<std::int64_t>(mixed);
}

// What a collective moves, behind the shapes of its tensors.
std::string collective_of(const Arguments& args) {
  std::string text = fmt::format("{}; {} {}", args.dims, args.collective, args.dtype);
  const auto add = [&](std::int64_t value, std::string_view what) {
    if (value != kUnknown) text += fmt::format(", {} {}", value, what);
  };
  add(args.in_elements, "in");
  add(args.out_elements, "out");
  add(args.group_size, "ranks");
  return text;
}

std::int64_t page_of(std::int64_t external_id) { return external_id >> 6; }
std::size_t place_of(std::int64_t external_id) { return static_cast<std::size_t>(external_id & 63); }

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::size_t kMaxDevices = 4096;

}  // namespace

Ops::Kind Ops::kind_of(trace::Name name) {
  if (name.id >= kinds_.size()) kinds_.resize(name.id + 1024, Kind::kUnseen);
  Kind& kind = kinds_[name.id];
  if (kind == Kind::kUnseen) {
    const std::string_view text = names_.text(name);
    kind = may_be_product(text) ? Kind::kProduct : may_be_attention(text) ? Kind::kAttention : Kind::kPlain;
  }
  return kind;
}

void Ops::take(const Event& event, trace::Id thread_id, std::int64_t end_ns) {
  trace::OpRow row;
  row.id = sink_.new_id();
  row.begin_ns = event.ts_ns;
  row.end_ns = end_ns;
  row.name = names_(event.name);
  row.thread_id = thread_id;
  row.shapes = event.args.collective.empty() ? names_(event.args.dims) : names_(collective_of(event.args));
  row.types = names_(event.args.types);
  row.correlation = known<std::int64_t>(event.args.external_id);
  row.sequence = known<std::int64_t>(event.args.sequence);
  remember(event.args.external_id, row.id);
  const Kind kind = kind_of(row.name);
  if (kind != Kind::kPlain) take_candidate(event, row, kind);
  if (wait_for_stacks_ && held_.size() < kMaxHeld) {
    held_.push_back(row);
    return;
  }
  if (wait_for_stacks_) ++without_stack_;
  sink_.add(row);
}

void Ops::remember(std::int64_t external_id, trace::Id op_id) {
  if (external_id == kUnknown) return;
  const auto fresh = static_cast<std::uint32_t>(pages_.size());
  const std::uint32_t* const page = page_ids_.insert(page_of(external_id), fresh);
  if (page == nullptr) return sink_.lose(trace::Loss::kInputLimit, 1, "operators that kernels are not joined to");
  if (*page == fresh) pages_.push_back({});
  pages_[*page][place_of(external_id)] = static_cast<std::uint32_t>(op_id);
}

std::optional<trace::Id> Ops::op_of(std::int64_t external_id) {
  if (external_id == kUnknown) return std::nullopt;
  const std::uint32_t* const page = page_ids_.find(page_of(external_id));
  if (page == nullptr || pages_[*page][place_of(external_id)] == 0) return std::nullopt;
  return pages_[*page][place_of(external_id)];
}

std::optional<std::uint32_t> Ops::shape_of(trace::Name name, Kind kind, const Event& event) {
  const auto fresh = static_cast<std::uint32_t>(shapes_.size());
  const std::uint32_t* const found = shape_ids_.insert(hash_of(name, event.args), fresh);
  if (found == nullptr) {
    sink_.lose(trace::Loss::kDefinitionsFull, 1, "distinct shapes of products");
    return std::nullopt;
  }
  if (*found == fresh) {
    Shape shape{.function = name, .product = std::nullopt, .attention = std::nullopt};
    const std::string_view text = names_.text(name);
    if (kind == Kind::kProduct) shape.product = product_of(text, event.args);
    if (kind == Kind::kAttention) shape.attention = attention_of(text, event.args);
    shapes_.push_back(shape);
  }
  const Shape& shape = shapes_[*found];
  return shape.product || shape.attention ? std::optional(*found) : std::nullopt;
}

void Ops::take_candidate(const Event& event, const trace::OpRow& row, Kind kind) {
  ++products_seen_;
  shapes_seen_ |= !event.args.dims.empty();
  const std::optional<std::uint32_t> shape =
      event.args.dims.empty() || event.args.external_id == kUnknown ? std::nullopt : shape_of(row.name, kind, event);
  if (!shape) return;
  Candidate made;
  made.begin_ns = row.begin_ns;
  made.end_ns = row.end_ns;
  made.thread_id = static_cast<std::uint32_t>(row.thread_id);
  made.op_id = static_cast<std::uint32_t>(row.id);
  made.shape = *shape;
  const auto fresh = static_cast<std::uint32_t>(candidates_.size());
  std::uint32_t* const place = candidate_ids_.insert(event.args.external_id, fresh);
  if (place == nullptr)
    return sink_.lose(trace::Loss::kInputLimit, 1, "matrix products and attention beyond the first 600,000");
  *place = fresh;  // a number that is used again is of the latest
  candidates_.push_back(made);
}

Ops::Candidate* Ops::candidate(std::int64_t external_id) {
  const std::uint32_t* const found = candidate_ids_.find(external_id);
  if (found == nullptr) return nullptr;
  Candidate& candidate = candidates_[*found];
  if (candidate.id == 0) candidate.id = static_cast<std::uint32_t>(sink_.new_id());
  return &candidate;
}

std::optional<trace::Id> Ops::executed(std::int64_t external_id, trace::Id kernel_id, std::int64_t duration_ns) {
  Candidate* const found = candidate(external_id);
  if (found == nullptr) return std::nullopt;
  const auto kernel_ns = static_cast<std::uint32_t>(std::clamp<std::int64_t>(duration_ns, 0, UINT32_MAX));
  if (found->kernel_id == 0 || kernel_ns > found->kernel_ns) {
    found->kernel_id = static_cast<std::uint32_t>(kernel_id);
    found->kernel_ns = kernel_ns;
  }
  return shapes_[found->shape].product ? std::optional<trace::Id>(found->id) : std::nullopt;
}

std::optional<trace::Id> Ops::captured(std::int64_t external_id) {
  const Candidate* const found = candidate(external_id);
  if (found == nullptr || !shapes_[found->shape].product) return std::nullopt;
  return found->id;
}

void Ops::emit(const Candidate& candidate) {
  const Shape& shape = shapes_[candidate.shape];
  const auto kernel = candidate.kernel_id == 0 ? trace::OptionalId{} : trace::OptionalId(candidate.kernel_id);
  if (shape.attention) {
    const Attention& a = *shape.attention;
    trace::AttentionRow row;
    row.id = candidate.id;
    row.begin_ns = candidate.begin_ns, row.end_ns = candidate.end_ns;
    row.thread_id = candidate.thread_id;
    row.op_id = candidate.op_id;
    row.kernel_id = kernel;
    row.function = shape.function;
    row.batch = a.batch, row.heads = a.heads, row.kv_heads = a.kv_heads;
    row.queries = a.queries, row.keys = a.keys, row.head_size = a.head_size;
    if (a.value_size != a.head_size) row.value_size = a.value_size;
    row.causal = a.causal;
    row.type = names_(a.type);
    sink_.add(row);
    return;
  }
  const Product& p = *shape.product;
  trace::GemmRow row;
  row.id = candidate.id;
  row.begin_ns = candidate.begin_ns, row.end_ns = candidate.end_ns;
  row.kernel_id = kernel;
  row.thread_id = candidate.thread_id;
  row.library = names_("aten");
  row.function = shape.function;
  row.m = p.m, row.n = p.n, row.k = p.k, row.batch = p.batch;
  row.type_a = names_(p.type_a), row.type_b = names_(p.type_b), row.type_c = names_(p.type_c);
  row.layout = names_("row");
  row.transpose_a = names_(std::string_view(&p.transpose_a, 1));
  row.transpose_b = names_(std::string_view(&p.transpose_b, 1));
  sink_.add(row);
}

void Ops::finish() {
  for (trace::OpRow& row : held_) {
    row.stack_id = stacks_.at(row.thread_id, row.begin_ns);
    sink_.add(row);
  }
  held_.clear();
  for (const Candidate& candidate : candidates_) {
    if (candidate.id != 0) emit(candidate);
  }
  candidates_.clear();
}

trace::AllocationRow Memory::row_of(const Key& key, std::int64_t bytes, std::int64_t begin_ns,
                                    const Lanes::Thread& thread) {
  trace::AllocationRow row;
  row.id = sink_.new_id();
  row.begin_ns = begin_ns;
  row.bytes = bytes;
  if (key.device >= 0) {
    row.device_id = lanes_.device(key.device);
    row.kind = names_("pool");
  }
  row.process_id = thread.process_id;
  return row;
}

void Memory::emit(const trace::AllocationRow& row) {
  if (wait_for_stacks_ && row.thread_id && held_.size() < kMaxHeld) return held_.push_back(row);
  if (wait_for_stacks_) sink_.lose(trace::Loss::kInputLimit, 1, "allocations whose stacks were not worked out");
  sink_.add(row);
}

void Memory::allocate(const Event& event, const Key& key, const Lanes::Thread& thread) {
  const auto found = open_.find(key);
  if (found != open_.end()) {  // its end was not recorded
    found->second.end_ns = std::max(found->second.begin_ns, event.ts_ns);
    emit(found->second);
    open_.erase(found);
  }
  trace::AllocationRow row = row_of(key, event.args.bytes, event.ts_ns, thread);
  row.address = event.args.address;
  row.thread_id = thread.id;
  if (open_.size() < kMaxOpen) {
    open_.emplace(key, row);
    return;
  }
  sink_.lose(trace::Loss::kInputLimit, 1, "allocations open at once: their end is not known");
  emit(row);
}

void Memory::free(const Event& event, const Key& key, Device& device, const Lanes::Thread& thread) {
  const auto found = open_.find(key);
  if (found != open_.end()) {
    found->second.end_ns = std::max(found->second.begin_ns, event.ts_ns);
    emit(found->second);
    open_.erase(found);
    return;
  }
  trace::AllocationRow row = row_of(key, -event.args.bytes, device.first_ns, thread);
  row.address = event.args.address;
  row.end_ns = std::max(device.first_ns, event.ts_ns);
  device.before_bytes = std::max<std::int64_t>(0, device.before_bytes + event.args.bytes);
  sink_.add(row);
}

void Memory::read_totals(const Event& event, std::int64_t ordinal, Device& device) {
  const auto reading = [&](std::string_view metric, std::int64_t bytes) {
    trace::TelemetryRow row;
    row.ts_ns = event.ts_ns;
    row.device_id = lanes_.device(ordinal);
    row.metric = names_(metric);
    row.value = static_cast<double>(bytes);
    row.unit = names_("B");
    sink_.add(row);
  };
  if (event.args.total_allocated != kUnknown) reading("allocator_allocated_bytes", event.args.total_allocated);
  if (event.args.total_reserved == kUnknown || event.args.total_reserved == device.reserved_bytes) return;
  device.reserved_bytes = event.args.total_reserved;
  reading("allocator_reserved_bytes", device.reserved_bytes);
}

void Memory::take(const Event& event, const Lanes::Thread& thread) {
  const Arguments& args = event.args;
  if (args.bytes == kUnknown || args.address == kUnknown || args.bytes == 0 || args.bytes > kMaxBytes ||
      args.bytes < -kMaxBytes || (args.device >= static_cast<std::int64_t>(kMaxDevices))) {
    sink_.lose(trace::Loss::kInputDamaged, 1, "memory events without size or address");
    return;
  }
  const bool on_device = args.device_type != 0 && args.device_type != kUnknown && args.device >= 0;
  const Key key{on_device ? args.device : -1, args.address};
  Device& device = devices_[key.device];
  if (!device.seen) {
    device.seen = true;
    device.first_ns = event.ts_ns;
    device.thread = thread;
    if (on_device && args.total_allocated != kUnknown && args.total_allocated <= kMaxBytes) {
      device.before_bytes = std::max<std::int64_t>(0, args.total_allocated - args.bytes);
    }
  }
  device.first_ns = std::min(device.first_ns, event.ts_ns);
  if (on_device) read_totals(event, key.device, device);
  if (args.bytes > 0) {
    allocate(event, key, thread);
  } else {
    free(event, key, device, thread);
  }
}

void Memory::finish() {
  for (auto& [key, row] : open_) emit(row);
  open_.clear();
  for (const auto& [ordinal, device] : devices_) {
    if (ordinal >= 0 && device.before_bytes > 0) {
      sink_.add(row_of({ordinal, 0}, device.before_bytes, device.first_ns, device.thread));
    }
  }
  devices_.clear();
  for (trace::AllocationRow& row : held_) {
    row.stack_id = stacks_.at(*row.thread_id, row.begin_ns);
    sink_.add(row);
  }
  held_.clear();
}

}  // namespace llmprof::importers::chrome_json
