#pragma once
// Marks a place where the timing of other threads decides. Nothing in the library; the stress test (tests/stress)
// lingers there for a random while, so that orders of events that are rare in life happen all the time.

namespace llmprof::collect {

#if LLMPROF_STRESS_POINTS
void stress_point();
#else
inline void stress_point() {}
#endif

}  // namespace llmprof::collect
