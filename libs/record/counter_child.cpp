#include "record/counter_child.h"

#include <cstring>

#include "record/counter_message.h"

namespace llmprof::record {
namespace {

struct Head {
  CounterEvent::Kind kind;
  std::uint32_t device;
  std::uint64_t begin_ns, end_ns, uuid_high, uuid_low, count;
  trace::Loss loss;
  std::uint32_t text_bytes, values;
};

}  // namespace

void append(std::string& bytes, const CounterEvent& event) {
  Head head{};
  head.kind = event.kind;
  head.device = event.device;
  head.begin_ns = event.begin_ns;
  head.end_ns = event.end_ns;
  head.uuid_high = event.uuid_high;
  head.uuid_low = event.uuid_low;
  head.count = event.count;
  head.loss = event.loss;
  head.text_bytes = static_cast<std::uint32_t>(event.text.size());
  head.values = static_cast<std::uint32_t>(event.values.size());
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += event.text;
  bytes.append(reinterpret_cast<const char*>(event.values.data()), event.values.size() * sizeof(double));
}

bool take(std::string_view& bytes, CounterEvent& event) {
  Head head{};
  if (bytes.size() < sizeof head) return false;
  std::memcpy(static_cast<void*>(&head), bytes.data(), sizeof head);
  const std::size_t values_bytes = std::size_t{head.values} * sizeof(double);
  const std::size_t text_bytes = head.text_bytes;
  if (bytes.size() < sizeof head + text_bytes + values_bytes) return false;
  event = {};
  event.kind = head.kind;
  event.device = head.device;
  event.begin_ns = head.begin_ns;
  event.end_ns = head.end_ns;
  event.uuid_high = head.uuid_high;
  event.uuid_low = head.uuid_low;
  event.count = head.count;
  event.loss = head.loss;
  event.text = bytes.substr(sizeof head, text_bytes);
  event.values.resize(head.values);
  if (head.values > 0) std::memcpy(event.values.data(), bytes.data() + sizeof head + text_bytes, values_bytes);
  bytes.remove_prefix(sizeof head + text_bytes + values_bytes);
  return true;
}

Result<std::unique_ptr<CounterChild>> CounterChild::start(const Open& open, const CounterPace& pace) {
  LLMPROF_LET(auto child,
              WatchChild::start([&](int events, int orders) { run_counter_child(open, pace, events, orders); }));
  return std::unique_ptr<CounterChild>(new CounterChild(std::move(child)));
}

std::vector<CounterEvent> CounterChild::receive() {
  child_->receive();
  std::vector<CounterEvent> events;
  std::string_view left = child_->bytes();
  for (CounterEvent event; take(left, event);) events.push_back(std::move(event));
  child_->bytes().erase(0, child_->bytes().size() - left.size());
  return events;
}

}  // namespace llmprof::record
