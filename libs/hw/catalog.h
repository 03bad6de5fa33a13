#pragma once
// What devices can do according to their vendors: data files with a source for every number (docs/format/devices.md).
// Made on first use, then read-only. Only dense rates: a rate with structured sparsity is never a peak.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hw/device.h"
#include "hw/peaks.h"

namespace llmprof::hw {

struct Figure {
  std::string key;      // "bandwidth"; of a peak, its arithmetic: "bfloat16"
  double value = 0;     // in `unit`
  std::string unit;     // "FLOP/s", "OP/s", "B/s", "B", "MHz", "W", "" for a count
  std::string tag;      // "spec" (a vendor's document), "second-hand", "derived" (arithmetic), "recalled"
  std::string source;   // the document, or the arithmetic
  std::string read_in;  // who quotes the document, if it was not read itself; may be empty
  std::string note;     // what the number is about: "float32 accumulate"; may be empty

  bool verified() const { return tag != "recalled"; }
};

struct DeviceSpec {
  std::string name;  // "NVIDIA H100 SXM"
  std::string vendor, architecture;
  std::string kind;                         // "gpu", "npu", "cpu+gpu"
  bool server = false;                      // made for servers, and software sees it as one device
  std::vector<std::string> short_names;     // for the command line: "h100-sxm"
  std::vector<std::string> reported_names;  // as drivers report it: "NVIDIA H100 80GB HBM3"
  std::vector<Figure> figures;              // units, memory, cache, bandwidth, clock, power, interconnect
  std::vector<Figure> peaks;                // of matrix products, by arithmetic, dense
  std::vector<std::string> conflicts;       // where sources disagree, and which one was taken

  const Figure* figure(std::string_view key) const;  // nullptr if unknown
  const Figure* peak(std::string_view type) const;
};

std::span<const DeviceSpec> catalog();

// By short name, product name or the name a driver reports; letter case, punctuation and the vendor's name do not
// matter. Never a guess: a slice (MIG), a laptop variant or a name that fits several devices is not found.
const DeviceSpec* find_device(std::string_view name);

// Those whose names contain what was typed, without case, punctuation and vendor: "h100" fits three. For names that
// people type; what a driver reports goes to find_device().
std::vector<const DeviceSpec*> match_devices(std::string_view typed);

// Short names of devices whose names begin with or contain `name`, else of those spelled nearly so; at most 8.
std::vector<std::string> suggest(std::string_view name);

Device device_of(const DeviceSpec& spec);
// Source "spec"; the method names the document: "dense, 1830 MHz, NVIDIA H100 product page".
std::vector<Peak> spec_peaks(const DeviceSpec& spec);

// One data file. An entry that lacks a source, a unit or a name is an error that says so.
Result<std::vector<DeviceSpec>> parse_catalog(std::string_view json_text, std::string_view where);

}  // namespace llmprof::hw
