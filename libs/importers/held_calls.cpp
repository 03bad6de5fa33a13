#include "importers/held_calls.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "importers/join_calls.h"

namespace llmprof::importers {
namespace {

template <class Row>
Row row_at(const std::byte* rows, std::size_t place) {
  Row row;
  std::memcpy(static_cast<void*>(&row), rows + place * sizeof(Row), sizeof(Row));
  return row;
}

std::int64_t launch_of(const trace::KernelRow& row) { return row.launch_begin_ns.value_or(row.begin_ns); }

}  // namespace

bool HeldCalls::may_be_product(trace::Name kernel) {
  if (kernel.id >= product_names_.size()) product_names_.resize(kernel.id + 1024, 0);
  signed char& known = product_names_[kernel.id];
  if (known == 0) known = may_execute_product(writer_.strings().text(kernel)) ? 1 : -1;
  return known > 0;
}

void HeldCalls::add_kernels(const std::byte* rows, std::size_t count) {
  saw_trace_ = saw_trace_ || count > 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = row_at<trace::KernelRow>(rows, i);
    if (kernels_.size() < kMost && may_be_product(row.name)) {
      kernels_.push_back(row);
    } else {
      writer_.add(row);
    }
  }
}

void HeldCalls::add_products(const std::byte* rows, std::size_t count, bool logged) {
  std::vector<trace::GemmRow>& held = logged ? calls_ : products_;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = row_at<trace::GemmRow>(rows, i);
    if (held.size() < kMost) {
      held.push_back(row);
    } else if (logged) {
      ++not_kept_;
    } else {
      writer_.add(row);
      ++written_;
    }
  }
}

// An inner call knows which algorithm the outer one got.
void HeldCalls::give_algorithms(const std::vector<std::int32_t>& outer) {
  for (std::size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] == kNotJoined) continue;
    trace::GemmRow& product = calls_[static_cast<std::size_t>(outer[i])];
    if (product.algorithm.id == 0) product.algorithm = calls_[i].algorithm;
    if (product.epilogue.id == 0) product.epilogue = calls_[i].epilogue;
  }
}

std::vector<std::int32_t> HeldCalls::join(const Identities& identities, const std::vector<LoggedCall>& calls) {
  std::unordered_map<trace::Id, const trace::GemmRow*> product_of;
  for (const trace::GemmRow& row : products_) product_of.emplace(row.id, &row);
  std::ranges::stable_sort(kernels_, {}, [&](const trace::KernelRow& row) {
    return std::pair(identities.pid_of_thread(row.thread_id), launch_of(row));
  });
  std::vector<ProductKernel> kernels;
  kernels.reserve(kernels_.size());
  for (const trace::KernelRow& row : kernels_) {
    ProductKernel kernel{.kernel_id = row.id,
                         .pid = identities.pid_of_thread(row.thread_id),
                         .thread_id = row.thread_id,
                         .launch_ns = launch_of(row),
                         .duration_ns = row.end_ns - row.begin_ns,
                         .name = writer_.strings().text(row.name)};
    if (const auto found = product_of.find(row.gemm_id.value_or(0)); found != product_of.end()) {
      const trace::GemmRow& product = *found->second;
      kernel.gemm_id = product.id;
      kernel.m = product.m, kernel.n = product.n, kernel.k = product.k, kernel.batch = product.batch;
    }
    kernels.push_back(kernel);
  }
  return join_calls(calls, kernels);
}

std::vector<LoggedCall> HeldCalls::logged_calls(const Identities& identities) {
  std::ranges::stable_sort(calls_, {},
                           [&](const trace::GemmRow& row) { return identities.pid_of_thread(row.thread_id); });
  const trace::Strings& strings = writer_.strings();
  std::vector<LoggedCall> calls;
  calls.reserve(calls_.size());
  for (const trace::GemmRow& row : calls_) {
    calls.push_back({.pid = identities.pid_of_thread(row.thread_id),
                     .m = row.m,
                     .n = row.n,
                     .k = row.k,
                     .batch = row.batch,
                     .library = strings.text(row.library),
                     .function = strings.text(row.function),
                     .type_a = strings.text(row.type_a),
                     .type_b = strings.text(row.type_b),
                     .type_c = strings.text(row.type_c)});
  }
  return calls;
}

// The call of the log becomes the product of its kernels: when and where the trace saw it, what the log says of it.
void HeldCalls::settle(std::size_t call, const std::vector<std::size_t>& kernels,
                       std::unordered_map<trace::Id, std::size_t>& trace_products) {
  trace::GemmRow& row = calls_[call];
  const std::size_t longest =
      *std::ranges::max_element(kernels, {}, [&](std::size_t k) { return kernels_[k].end_ns - kernels_[k].begin_ns; });
  const trace::KernelRow& kernel = kernels_[longest];
  row.kernel_id = kernel.id;
  row.thread_id = kernel.thread_id;
  row.begin_ns = launch_of(kernel);
  row.end_ns = std::max(row.begin_ns, kernel.launch_end_ns.value_or(row.begin_ns));
  if (const auto known = trace_products.find(kernel.gemm_id.value_or(0)); known != trace_products.end()) {
    const trace::GemmRow& product = products_[known->second];
    row.id = product.id;  // kernels outside of what was kept name it
    row.begin_ns = product.begin_ns, row.end_ns = product.end_ns;
    trace_products.erase(known);
  }
  for (const std::size_t k : kernels) kernels_[k].gemm_id = row.id;
}

HeldCalls::Joined HeldCalls::finish(const Identities& identities) {
  const std::vector<LoggedCall> calls = logged_calls(identities);
  const std::vector<std::int32_t> outer = outer_calls(calls);
  give_algorithms(outer);
  const std::vector<std::int32_t> call_of_kernel = join(identities, calls);
  std::vector<std::vector<std::size_t>> kernels_of(calls_.size());
  for (std::size_t k = 0; k < call_of_kernel.size(); ++k) {
    if (call_of_kernel[k] != kNotJoined) kernels_of[static_cast<std::size_t>(call_of_kernel[k])].push_back(k);
  }
  std::unordered_map<trace::Id, std::size_t> trace_products;  // that no call has taken
  for (std::size_t i = 0; i < products_.size(); ++i) trace_products.emplace(products_[i].id, i);

  Joined joined{.not_kept = not_kept_};
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    if (outer[i] != kNotJoined) continue;  // a part of another
    if (!kernels_of[i].empty()) settle(i, kernels_of[i], trace_products);
    (kernels_of[i].empty() ? joined.not_joined : joined.calls) += 1;
    if (saw_trace_ && kernels_of[i].empty()) continue;
    writer_.add(calls_[i]);
    ++written_;
  }
  for (const trace::GemmRow& row : products_) {
    if (!trace_products.contains(row.id)) continue;
    writer_.add(row);
    ++written_;
  }
  for (const trace::KernelRow& row : kernels_) writer_.add(row);
  if (!saw_trace_) joined.not_joined = 0;
  joined.gemm_rows = written_;
  return joined;
}

}  // namespace llmprof::importers
