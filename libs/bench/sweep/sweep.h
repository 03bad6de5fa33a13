#pragma once
// What is to be measured: the points of a sweep, in order. Every value of every axis meets every value of the others.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/axis.h"
#include "base/result.h"
#include "bench/bench.h"
#include "bench/operator.h"

namespace llmprof::bench {

inline constexpr std::size_t kMostPoints = 10'000;

std::string_view cache_name(Cache cache);  // "cold", "hot"
std::optional<Cache> parse_cache(std::string_view name);

struct Point {
  Problem problem;
  std::string name;  // what it stands for: "q_proj"; may be empty
  Cache cache = Cache::kCold;
  std::string implementation;                       // "": the first that can
  std::string impossible;                           // why it cannot be measured anywhere; "" it may be
  std::optional<std::int64_t> used_calls, used_ns;  // of this shape in a recorded run

  std::string key() const;  // two points with the same key are the same measurement
};

enum class DeviceKind : std::uint8_t { kCpu, kGpu };
// Of "cpu", "cuda:1" or "", as open_bench() takes them.
DeviceKind kind_of_device(const std::string& device);

// How each problem is measured.
struct Variants {
  std::vector<Cache> caches = {Cache::kCold};
  std::string implementation;  // "": the first that can; "all": each that the operator has
};

struct SweepRequest {
  std::vector<std::string> operators;  // "all" stands for all of them
  std::vector<base::Axis> axes;        // those not named take the operator's own values
  std::vector<Type> types;             // empty: the operator's own on this kind of device
  Variants variants;
  DeviceKind device = DeviceKind::kCpu;
};

// Unknown names, axes that no operator has and values under an axis' least are errors; sizes that do not fit each other
// become points that say so, unless all of an operator are such.
Result<std::vector<Point>> plan_sweep(const SweepRequest& request);

// The parts of it, for other plans.
Result<std::vector<const Operator*>> chosen_operators(const std::vector<std::string>& names);
Type default_type(const Operator& op, DeviceKind device);
bool knows_type(const Operator& op, Type type);
Point make_point(const Operator& op, Type type, const std::vector<std::pair<std::string, std::int64_t>>& axes);
// Every point in each variant; equal ones once, their names joined.
Result<std::vector<Point>> with_variants(const std::vector<Point>& points, const Variants& variants, DeviceKind device);

}  // namespace llmprof::bench
