#pragma once
// The points of one operator: what they have in common stands above their table, what varies is a column of it.

#include <string>
#include <vector>

#include "analyze/bench.h"

namespace llmprof::report {

struct BenchColumn {
  std::string title;
  bool axis = false;     // title is the axis; else it names a property
  bool text = false;     // left-aligned
  bool elastic = false;  // may be shortened
};

struct BenchGroup {
  std::string op;
  std::string fixed;  // "bfloat16, n=4096 k=4096, cold cache, cublaslt"
  std::vector<BenchColumn> columns;
  std::vector<const analyze::BenchPoint*> measured;
};

// Operators in the order of their first point; those without a measured point are left out. Points must outlive them.
std::vector<BenchGroup> groups_of(const std::vector<analyze::BenchPoint>& points);

std::string cell_of(const analyze::BenchPoint& point, const BenchColumn& column);
std::string title_of(const analyze::BenchPoint& point);  // "gemm bfloat16 m=1 n=4096 k=4096, hot, cublaslt (q_proj)"

}  // namespace llmprof::report
