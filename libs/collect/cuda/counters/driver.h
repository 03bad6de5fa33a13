#pragma once
// The two calls of the CUDA driver that measuring needs, found at run time. Our callbacks leave them alone.

namespace llmprof::collect::counters {

void* current_context();  // of this thread; null: none, or the driver could not be found
void wait_for_device();   // until everything that this thread's context was given is done

}  // namespace llmprof::collect::counters
