#include "importers/join_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <string>

#include "base/strings.h"

namespace llmprof::importers {
namespace {

// What two views of one product have in common: rows and columns change places where one stores by rows.
struct Shape {
  std::int64_t small = 0, large = 0, k = 0, batch = 1;
  bool operator==(const Shape&) const = default;
};

template <class T>
Shape shape_of(const T& product) {
  return {std::min(product.m, product.n), std::max(product.m, product.n), product.k, product.batch};
}

using Match = std::pair<std::int32_t, std::int32_t>;  // places in a and b

// The places of two sequences that belong together, in order. Differences are few and short as a rule, so the search
// goes along them (Myers' O(ND) idea) in rounds: after kMostDifferences it keeps the longest way so far and goes on
// from its end, so that time and memory stay bounded whatever the sequences are.
class Alignment {
 public:
  Alignment(std::span<const Shape> a, std::span<const Shape> b) : a_(a), b_(b) {}

  std::vector<Match> run() {
    std::vector<Match> all;
    Point from = begin();
    while (from.a < size(a_) && from.b < size(b_)) {
      const Point end = round(from);
      all.insert(all.end(), found_.begin(), found_.end());
      from = end;
    }
    return all;
  }

 private:
  static constexpr std::int32_t kMostDifferences = 256;
  static constexpr std::size_t kAnchor = 16;  // products that must follow each other to say where a recording began

  struct Point {
    std::int32_t a = 0, b = 0;
  };
  static std::int32_t size(std::span<const Shape> shapes) { return static_cast<std::int32_t>(shapes.size()); }

  // Where the beginning of `part` stands in `whole`; 0 if nowhere.
  static std::int32_t find_start(std::span<const Shape> whole, std::span<const Shape> part) {
    const auto anchor = part.first(std::min(part.size(), kAnchor));
    const auto at = std::search(whole.begin(), whole.end(), anchor.begin(), anchor.end());
    return at == whole.end() ? 0 : static_cast<std::int32_t>(at - whole.begin());
  }
  // A trace is often a window of what the log holds, and the other way round.
  Point begin() const {
    if (a_.size() > b_.size()) return {find_start(a_, b_), 0};
    return {0, find_start(b_, a_)};
  }

  std::int32_t along(std::int32_t a, std::int32_t b) const {
    while (a < size(a_) && b < size(b_) && a_[static_cast<std::size_t>(a)] == b_[static_cast<std::size_t>(b)]) ++a, ++b;
    return a;
  }

  // furthest_[d][k]: how far into a, from `from`, a way with d differences comes on diagonal k (a - b).
  Point round(Point from) {
    furthest_.assign(1, {along(from.a, from.b) - from.a});
    std::int32_t d = 0;
    while (!reached_end(from, d) && d < kMostDifferences) {
      ++d;
      std::vector<std::int32_t> next(static_cast<std::size_t>(2 * d + 1), -1);
      for (std::int32_t k = -d; k <= d; k += 2) next[static_cast<std::size_t>(k + d)] = step(from, d, k);
      furthest_.push_back(std::move(next));
    }
    return trace_back(from, d);
  }

  std::int32_t at(std::int32_t d, std::int32_t k) const {
    if (k < -d || k > d) return -1;
    return furthest_[static_cast<std::size_t>(d)][static_cast<std::size_t>(k + d)];
  }
  std::int32_t entry(std::int32_t d, std::int32_t k) const {
    const std::int32_t skip_a = at(d - 1, k - 1), skip_b = at(d - 1, k + 1);
    return std::max(skip_a < 0 ? -1 : skip_a + 1, skip_b);
  }
  std::int32_t step(Point from, std::int32_t d, std::int32_t k) const {
    const std::int32_t a = entry(d, k);
    if (a < 0 || from.a + a > size(a_) || from.b + a - k > size(b_) || a - k < 0) return -1;
    return along(from.a + a, from.b + a - k) - from.a;
  }
  bool reached_end(Point from, std::int32_t d) const {
    for (std::int32_t k = -d; k <= d; k += 2) {
      const std::int32_t a = at(d, k);
      if (a >= 0 && (from.a + a == size(a_) || from.b + a - k == size(b_))) return true;
    }
    return false;
  }

  // The way that came furthest, from its end to its beginning.
  Point trace_back(Point from, std::int32_t d) {
    std::int32_t k = -d;
    for (std::int32_t other = -d; other <= d; other += 2) {
      if (2 * at(d, other) - other > 2 * at(d, k) - k && at(d, other) >= 0) k = other;
    }
    std::int32_t a = at(d, k);
    found_.clear();
    if (a < 0) return {size(a_), size(b_)};  // no way leads on
    const Point end{from.a + a, from.b + a - k};
    for (; d >= 0; --d) {
      const std::int32_t start = d == 0 ? 0 : entry(d, k);
      for (; a > start; --a) found_.push_back({from.a + a - 1, from.b + a - 1 - k});
      if (d == 0) break;
      const bool skipped_a = at(d - 1, k - 1) >= 0 && at(d - 1, k - 1) + 1 == start;
      k += skipped_a ? -1 : 1;
      a = at(d - 1, k);
    }
    std::reverse(found_.begin(), found_.end());
    return end;
  }

  std::span<const Shape> a_, b_;
  std::vector<std::vector<std::int32_t>> furthest_;
  std::vector<Match> found_;
};

// Unrelated programs have a few shapes in common, too: then nothing is joined.
std::vector<Match> align(const std::vector<Shape>& a, const std::vector<Shape>& b) {
  std::vector<Match> matches = Alignment(a, b).run();
  if (2 * matches.size() < std::min(a.size(), b.size())) matches.clear();
  return matches;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  const auto same = [](char x, char y) { return base::lowercase(x) == y; };
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
  });
}

// A kernel that finishes the product of the kernel before it.
bool is_second_part(std::string_view name) {
  return contains_any(name, {"splitkreduce", "split_k_reduce", "gemvnsp_reduce"});
}

using Places = std::vector<std::size_t>;  // in calls or kernels

class Join {
 public:
  Join(std::span<const LoggedCall> calls, std::span<const ProductKernel> kernels)
      : calls_(calls), kernels_(kernels), call_of_(kernels.size(), kNotJoined) {}

  std::vector<std::int32_t> run() {
    const std::vector<std::int32_t> outer = outer_calls(calls_);
    std::map<std::int64_t, Places> calls, kernels;  // by pid
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (outer[i] == kNotJoined) calls[calls_[i].pid].push_back(i);
    }
    for (std::size_t i = 0; i < kernels_.size(); ++i) kernels[kernels_[i].pid].push_back(i);
    if (calls.size() == 1 && kernels.size() == 1) {  // whatever they call the process
      join(calls.begin()->second, kernels.begin()->second);
      return std::move(call_of_);
    }
    for (const auto& [pid, places] : calls) {
      if (const auto found = kernels.find(pid); found != kernels.end()) join(places, found->second);
    }
    return std::move(call_of_);
  }

 private:
  void join(const Places& calls, const Places& kernels) {
    const bool shapes =
        std::any_of(kernels.begin(), kernels.end(), [&](std::size_t i) { return kernels_[i].gemm_id != 0; });
    shapes ? join_by_shape(calls, kernels) : join_by_count(calls, kernels);
  }

  void join_by_shape(const Places& calls, const Places& kernels) {
    std::vector<Shape> asked, executed;
    for (const std::size_t i : calls) asked.push_back(shape_of(calls_[i]));
    std::map<trace::Id, std::size_t> product_of_gemm;  // its kernels need not follow each other
    std::vector<std::optional<std::size_t>> product_of_kernel;
    for (const std::size_t i : kernels) {
      const ProductKernel& kernel = kernels_[i];
      if (kernel.gemm_id == 0) {
        product_of_kernel.emplace_back();
        continue;
      }
      const auto [place, is_new] = product_of_gemm.emplace(kernel.gemm_id, executed.size());
      if (is_new) executed.push_back(shape_of(kernel));
      product_of_kernel.emplace_back(place->second);
    }
    std::vector<std::int32_t> call_of_product(executed.size(), kNotJoined);
    for (const auto& [call, product] : align(asked, executed))
      call_of_product[static_cast<std::size_t>(product)] =
          static_cast<std::int32_t>(calls[static_cast<std::size_t>(call)]);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (product_of_kernel[i]) call_of_[kernels[i]] = call_of_product[*product_of_kernel[i]];
    }
  }

  // Names alone do not say which product a kernel is of: only when every call has its kernel, all are joined.
  void join_by_count(const Places& calls, const Places& kernels) {
    std::vector<std::size_t> product_of;
    std::size_t products = 0;
    for (const std::size_t i : kernels) {
      if (!is_second_part(kernels_[i].name) || products == 0) ++products;
      product_of.push_back(products - 1);
    }
    if (products != calls.size()) return;
    for (std::size_t i = 0; i < kernels.size(); ++i)
      call_of_[kernels[i]] = static_cast<std::int32_t>(calls[product_of[i]]);
  }

  std::span<const LoggedCall> calls_;
  std::span<const ProductKernel> kernels_;
  std::vector<std::int32_t> call_of_;
};

template <class Row>
Row row_at(const std::byte* rows, std::size_t place) {
  Row row;
  std::memcpy(static_cast<void*>(&row), rows + place * sizeof(Row), sizeof(Row));
  return row;
}

std::int64_t launch_of(const trace::KernelRow& row) { return row.launch_begin_ns.value_or(row.begin_ns); }

}  // namespace

bool may_execute_product(std::string_view name) {
  if (contains_any(name, {"flash", "fmha", "attention", "sdpa", "triton", "conv", "fprop", "dgrad", "wgrad"}))
    return false;
  return contains_any(name, {"gemm", "gemv", "nvjet", "cutlass", "splitkreduce", "xmma"});
}

bool is_inner_call(std::string_view function) {
  // cublasLtTSTMatmul, cublasLtSSSMatmul: three letters for the types of A, the sums and C.
  constexpr std::string_view kBegin = "cublasLt", kEnd = "Matmul";
  if (!function.starts_with(kBegin) || !function.ends_with(kEnd)) return false;
  const std::string_view types = function.substr(kBegin.size(), function.size() - kBegin.size() - kEnd.size());
  return types.size() == 3 && std::all_of(types.begin(), types.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::vector<std::int32_t> outer_calls(std::span<const LoggedCall> calls) {
  struct Process {
    std::vector<Shape> outer, inner;
    Places outer_places, inner_places;
  };
  std::map<std::int64_t, Process> processes;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Process& process = processes[calls[i].pid];
    const bool inner = is_inner_call(calls[i].function);
    if (!inner && calls[i].function.starts_with("cublasLt")) continue;  // asked by the program itself
    (inner ? process.inner : process.outer).push_back(shape_of(calls[i]));
    (inner ? process.inner_places : process.outer_places).push_back(i);
  }
  std::vector<std::int32_t> result(calls.size(), kNotJoined);
  for (const auto& [pid, process] : processes) {
    for (const auto& [inner, outer] : align(process.inner, process.outer)) {
      result[process.inner_places[static_cast<std::size_t>(inner)]] =
          static_cast<std::int32_t>(process.outer_places[static_cast<std::size_t>(outer)]);
    }
  }
  return result;
}

std::vector<std::int32_t> join_calls(std::span<const LoggedCall> calls, std::span<const ProductKernel> kernels) {
  return Join(calls, kernels).run();
}

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
