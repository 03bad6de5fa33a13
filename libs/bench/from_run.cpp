#include "bench/from_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/human.h"

namespace llmprof::bench {
namespace {

constexpr std::int64_t kTile = 64;  // rows that kernels of matrix products come in multiples of

// A product stored by columns is the transposed one stored by rows, and a matrix times a vector is one row of products:
// tokens are then the rows of x, as the operator has them.
constexpr const char* kShapes = R"(
WITH used AS (
  SELECT CASE WHEN layout = 'column' OR n = 1 THEN n ELSE m END AS m,
    CASE WHEN layout = 'column' OR n = 1 THEN m ELSE n END AS n,
    k, batch, type_a AS type, end_ns - begin_ns AS time_ns
  FROM gemm WHERE m > 0 AND n > 0 AND k > 0 AND batch > 0)
SELECT m, n, k, batch, type, count(*)::BIGINT AS calls, sum(time_ns)::BIGINT AS time_ns,
  (sum(sum(time_ns)) OVER ())::DOUBLE AS all_ns
FROM used GROUP BY m, n, k, batch, type ORDER BY time_ns DESC, m, n, k, batch, type)";

struct Shape {
  std::int64_t m = 0, n = 0, k = 0, batch = 0;
  Type type = Type::kFloat32;
};

Point point_of(const Operator& gemm, const Shape& shape, Type type, std::int64_t m) {
  return make_point(gemm, type, {{"m", m}, {"n", shape.n}, {"k", shape.k}, {"batch", shape.batch}});
}

void add_points(const Operator& gemm, const Shape& shape, const Point& used, const FromRunRequest& request,
                std::vector<Point>& points) {
  const std::vector<Type> own = {shape.type};
  for (const Type type : request.types.empty() ? own : request.types) {
    Point point = point_of(gemm, shape, type, shape.m);
    point.name = used.name;
    point.used_calls = used.used_calls;
    point.used_ns = used.used_ns;
    points.push_back(std::move(point));
    if (!request.neighbours) continue;
    for (const std::int64_t m : neighbours_of(shape.m)) {
      Point near = point_of(gemm, shape, type, m);
      near.name = fmt::format("near m={}", shape.m);
      points.push_back(std::move(near));
    }
  }
}

}  // namespace

std::vector<std::int64_t> neighbours_of(std::int64_t m) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;  // beyond it nothing is measured anyway
  if (m < 1 || m > kMost) return {};
  const auto floor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(m)));
  std::set<std::int64_t> around{floor == m ? m / 2 : floor, floor * 2, (m - 1) / kTile * kTile,
                                (m / kTile + 1) * kTile};
  around.erase(0);
  around.erase(m);
  return {around.begin(), around.end()};
}

Result<std::vector<Point>> plan_from_run(const trace::Run& run, const FromRunRequest& request) {
  const Operator* gemm = find_operator("gemm");
  if (gemm == nullptr) return Error{ErrorCode::kInternal, "there is no operator gemm", ""};
  LLMPROF_LET(const trace::ResultTable table, run.query(kShapes));
  if (table.rows.empty()) {
    return Error{ErrorCode::kUsage, run.folder() + " has no matrix products",
                 "--from takes a run of `llmprof record` whose program called BLAS"};
  }
  std::vector<Point> points;
  std::size_t shapes = 0;
  for (const auto& row : table.rows) {
    if (shapes++ == request.top) break;
    const auto type = parse_type(row[4].text);
    const Shape shape{row[0].as_int(), row[1].as_int(), row[2].as_int(), row[3].as_int(),
                      type.value_or(Type::kFloat32)};
    Point used;
    used.used_calls = row[5].as_int();
    used.used_ns = row[6].as_int();
    const double all_ns = row[7].as_double();
    used.name =
        fmt::format("{} of the run's products", base::human_percent(all_ns > 0 ? row[6].as_double() / all_ns : 0));
    if (!type && request.types.empty()) {
      Point unknown = point_of(*gemm, shape, Type::kFloat32, shape.m);
      unknown.name = used.name;
      unknown.impossible = fmt::format("the run used the type {}, which no operator has", row[4].text);
      points.push_back(std::move(unknown));
      continue;
    }
    add_points(*gemm, shape, used, request, points);
  }
  return with_variants(points, request.variants, request.device);
}

}  // namespace llmprof::bench
