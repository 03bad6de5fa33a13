#pragma once
// The NVTX v3 listener: annotations of the program become range records.

#include "collect/nvtx_abi.h"

namespace llmprof::collect {

// Puts our functions into the client's tables. Called once per copy of NVTX in the process.
// 0: recording is off or the client is not understood; it then makes its calls no-ops.
int attach_nvtx(nvtx::GetExportTable get_export_table);

// Of llmprof_collector_table.
void python_begin(void* (*pointer_of)(void*), void (*keep)(void*), void* none);
void* python_push(void* number, void* unused);
void* python_pop(void* number, void* unused);

}  // namespace llmprof::collect
