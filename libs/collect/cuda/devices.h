#pragma once
// The devices that this process sees, as facts. Asks the driver, so never inside cuInit or one of its callbacks.

namespace llmprof::collect {

void state_devices();

}  // namespace llmprof::collect
