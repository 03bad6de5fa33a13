#pragma once
// What was read at intervals: GPU metrics, and samples of the threads' call stacks.

#include "importers/nsys_sqlite/about.h"
#include "importers/nsys_sqlite/devices.h"
#include "importers/nsys_sqlite/stacks.h"

namespace llmprof::importers::nsys {

Result<void> read_gpu_metrics(Database& database, Devices& devices);
Result<void> read_samples(Database& database, Strings& strings, Actors& actors, const About& about);

}  // namespace llmprof::importers::nsys
