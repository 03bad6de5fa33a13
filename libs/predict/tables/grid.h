#pragma once
// Measured times of one operator over up to four axes, and what they say between and beyond the measured points.
// Fill it with add(), then settle() it once; ask() allocates nothing and may be called from several threads.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace llmprof::predict {

// What a predicted time stands on.
enum class Basis : std::uint8_t {
  kMeasured,      // a measured point, as it was measured
  kInterpolated,  // between measured points
  kExtrapolated,  // beyond them
  kRoof,          // no measurement: the least time that the device needs
  kAssumed,       // a stated cost: links between ranks, launches
};
inline constexpr std::size_t kBases = 5;
std::string_view basis_name(Basis basis);  // "measured"

struct Answer {
  double ns = 0;
  Basis basis = Basis::kRoof;
};

// The least time of the operator at any point of its axes, by libs/model and the device's peaks.
class FloorAt {
 public:
  virtual ~FloorAt() = default;
  virtual double ns(std::span<const double> at) const = 0;  // 0: no peak is known, or nothing has to move
  // Whether a time is too short to be true: see faster_than_possible() of parts.h. Nothing known: false.
  virtual bool impossible(std::span<const double> at, double ns) const = 0;
};

// How times between points follow from those at the points. backtest_operators() compares them; what it said of real
// tables (vLLM 0.19 on an RTX 4090) is why each kind of operator has the one it has.
enum class Blend : std::uint8_t {
  // The share of the roof that is reached: time = floor / utilisation. Matrix products: between points of a dense table
  // it errs as linear times do (median 0.3 %, p90 5 %), but it follows the bend where weights stop to be the limit, and
  // beyond the last point it is the only one that holds (a product of 256 rows from one of 64: 4 to 30 % too long;
  // times in proportion: 170 to 230 %).
  kUtilisation,
  // The time above the floor: time = floor + overhead. Attention: the overhead of its kernels is nearly linear along
  // each axis, the floor is quadratic in the chunk. Left out one at a time (neighbours then lie a factor 4 apart),
  // along
  // the chunk p90 7.8 % against 13.9 % of linear times and 18 % of utilisations; along the others as linear times.
  // Logarithmic axes are worse everywhere. Beyond the last point the overhead goes on along its line: of the last chunk
  // 3 % off in the median, where holding the utilisation is 25 %. Without a floor these are linear times.
  kOverhead,
  // As a power of each axis: between two points the exponent is theirs. For times that grow with the square of an axis
  // and whose floor is not known: in the middle of a doubling linear times are 12 % too long there.
  kPower,
};

class Grid {
 public:
  static constexpr std::size_t kMaxAxes = 4;
  using At = std::array<double, kMaxAxes>;

  // `apart`: axes whose 0 is a case of its own (no prefill, no decodes), never blended with what is above it.
  Grid(std::size_t axes, Blend blend, std::array<bool, kMaxAxes> apart = {})
      : axes_(axes), blend_(blend), apart_(apart) {}

  void add(std::span<const double> at, double ns);
  void set_blend(Blend blend) { blend_ = blend; }  // before settle()
  struct Settled {
    std::int64_t duplicates = 0;  // points measured again: their mean is used
    std::int64_t impossible = 0;  // faster than the device can be: dropped
  };
  // Sorts, joins duplicates, drops impossible points. `floor` must outlive the grid; nullptr: none is known.
  Settled settle(const FloorAt* floor);

  std::size_t axes() const { return axes_; }
  Blend blend() const { return blend_; }
  std::int64_t points() const { return static_cast<std::int64_t>(points_.size()); }
  bool empty() const { return points_.empty(); }
  std::pair<double, double> range(std::size_t axis) const;  // of the measured values

  // The time at a point. Never under the floor, or, where points are (what a cache holds comes faster, clocks rise
  // above the data sheet's), never nearer to 0 than the best of them. Must not be empty.
  Answer ask(std::span<const double> at) const;
  // As if nothing had been measured at this value of this axis: for back-tests. nullopt: nothing else is left.
  std::optional<Answer> ask_without(std::span<const double> at, std::size_t hidden_axis) const;

  struct Point {
    At at{};
    double ns = 0, floor_ns = 0;
  };
  const std::vector<Point>& all() const { return points_; }  // settled: in the order of their axes

 private:
  // Values of one axis below one choice of the axes before it; `begin` is where each one's values of the next axis
  // (of the last axis: its point) begin.
  struct Level {
    std::vector<double> values;
    std::vector<std::uint32_t> begin;
  };
  struct Query {
    At at{};
    std::size_t hidden_axis = kMaxAxes;
  };
  struct Found {
    double value = 0;  // an overhead or a utilisation
    Basis basis = Basis::kMeasured;
    bool any = true;
  };
  struct Bracket {
    std::uint32_t low = 0, high = 0;
    double weight = 0;  // of high
    Basis basis = Basis::kMeasured;
    bool above = false, any = true;
    std::uint32_t first = 0;  // where the values begin, if `above`
  };
  void build_levels();
  Bracket bracket(std::size_t axis, std::uint32_t begin, std::uint32_t end, const Query& query) const;
  Found find(std::size_t axis, std::uint32_t begin, std::uint32_t end, Query& query) const;
  Found child(std::size_t axis, std::uint32_t index, Query& query) const;
  Found beyond(std::size_t axis, const Bracket& where, Query& query, Found edge) const;
  double below_ns_log(std::size_t axis, std::uint32_t first, std::uint32_t end, Query& query, double first_log) const;
  double floor_ns(const At& at) const;
  Answer answer(Found found, const Query& query) const;

  std::size_t axes_;
  Blend blend_;
  std::array<bool, kMaxAxes> apart_;
  std::vector<Point> points_;
  std::array<Level, kMaxAxes> levels_;
  const FloorAt* floor_ = nullptr;
  double best_ = 1;  // share of the floor that points reach
};

}  // namespace llmprof::predict
