#pragma once
// CUDA_GPU_MEMORY_USAGE_EVENTS: allocations of device memory, paired with their release by address.

#include "importers/nsys_sqlite/devices.h"
#include "importers/nsys_sqlite/launches.h"

namespace llmprof::importers::nsys {

Result<void> read_allocations(Database& database, Actors& actors, Devices& devices, Launches& launches);

}  // namespace llmprof::importers::nsys
