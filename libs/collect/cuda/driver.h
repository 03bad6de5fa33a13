#pragma once
// The calls of the CUDA driver that the collector makes itself, found at run time. Our callbacks leave them alone.

#include <cstdint>

namespace llmprof::collect {

void* current_context();  // of this thread; null: none, or the driver could not be found
void wait_for_device();   // until everything that this thread's context was given is done

// The name of a kernel by its handle, mangled; null: the driver is too old (before CUDA 12.3) or does not know it. A
// CUkernel may stand where a CUfunction is declared.
const char* name_of_kernel(void* function, void* kernel);

// Whether everything that a stream was given has ended. Asked without waiting and without a word to captures of other
// threads; a stream that is being captured is not asked: that would end the capture.
enum class StreamState : std::uint8_t { kUnknown, kIdle, kBusy };
StreamState state_of_stream(void* stream);

// The context a stream was made in, which need not be the one that is current; null: it cannot be asked.
void* context_of_stream(void* stream);

// Puts an event behind what the stream was given so far: `event`, or a new one where that is null or of another
// context. Null: it cannot be done, as while the stream is being captured.
void* mark_stream(void* stream, void* event);
StreamState state_of_event(void* event);

// The devices that this process sees, as facts. Asks the driver, so never inside cuInit or one of its callbacks.

void state_devices();

}  // namespace llmprof::collect
