#pragma once
// Where tables that were measured here are kept: a folder per device, and in it one per shape of a model, degree of
// tensor parallelism and type. The files are those of docs/format/operator-tables.md, so `--tables FOLDER` reads them,
// too. What was measured before is replaced.

#include <string>

#include "base/result.h"
#include "hw/device.h"
#include "model/config.h"
#include "predict/measured/run_tables.h"

namespace llmprof::predict {

// "llama-4096x32-1b2c3d4e": equal for models whose operators have equal shapes, whatever their names and types.
std::string shape_key(const model::Config& config);

// The type that tables are kept under: as asked for, else the model's own on a GPU and float32 on a CPU. Aliases are
// the same type.
std::string kept_type(const model::Config& config, const hw::Device& device, const std::string& asked);

struct TablesKey {
  hw::Device device;
  const model::Config& config;  // of the whole model
  std::int64_t tensor = 1;
  std::string type;
};
// "" where there is no place for a cache.
std::string kept_folder(const TablesKey& key);

// The folder they are in now.
Result<std::string> keep_tables(const TablesKey& key, const MeasuredTables& tables);
// The same into any folder, which must exist.
Result<void> write_tables(const MeasuredTables& tables, const std::string& folder);
// kNotFound with a hint where nothing was measured.
Result<OperatorTables> kept_tables(const TablesKey& key, TimesOf times = TimesOf::kKernels);
// What launches cost when they were measured, from the meta.json beside tables; source "": it does not say.
LaunchCosts kept_launch_costs(const std::string& tables_folder);

}  // namespace llmprof::predict
