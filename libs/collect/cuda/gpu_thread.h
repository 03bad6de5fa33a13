#pragma once
// Our thread for CUPTI: asks it for what it has four times a second, and watches that it still gives it to us. A thread
// of its own, since a flush waits inside CUPTI and the driver while the writer must go on writing.

namespace llmprof::collect {

bool start_gpu_thread();
void wake_gpu_thread();

}  // namespace llmprof::collect
