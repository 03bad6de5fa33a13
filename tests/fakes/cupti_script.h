#pragma once
// What the fake CUPTI is told to get wrong: FAKE_CUPTI is a list of words "key=value", separated by blanks.
//
//   version=N          the API version it claims; records have that version's sizes (default 130001)
//   fail=F@N:E         the N-th call of function F (or of any: *) answers error E and does nothing; F@N+:E from there
//   on held=NAME          another client, called NAME, holds the subscriber slot thief=N:M          after N records
//   another client takes the buffers; after M more it stops, and switches kinds off drop=N zero=N reversed=N shifted=N
//   early=N
//                      every N-th record is dropped and counted; has no times; ends before it starts; is 1e14 ns off;
//                      starts before its launch
//   unheard=N          every N-th record is followed by one of a kind nobody knows
//   grown=BYTES        kernel records are that much longer than any known
//   shuffle=1          the records of a buffer stand in reverse
//   hide_nodes=1       graph nodes are made without callbacks
//   twice=N stray=N empty=N
//                      every N-th completion comes twice; is followed by one of a buffer never lent; by an empty one
//   overlong=N         every N-th completion claims more valid bytes than the buffer has
//   late_ms=N          completions come so much later, from a thread of CUPTI's
//   flush_ms=N         FlushAll takes so long, with CUPTI's lock held
//   lock=1             callbacks of the subscriber run with CUPTI's lock held, too. The real one was not seen to (H200,
//                      CUDA 13.0: profiler calls of other threads go through while a callback waits), which is why a
//                      capture may wait for a call that another thread makes outside of callbacks
//   keep=1             FlushAll gives nothing back: buffers come when CUPTI's destructor runs
//   incomplete=1       nothing ever completes: only a forced flush delivers
//   forbidden=1        hardware counters may not be read: Start of ranges, Enable of samplings, availability say so
//   busy=1             another client has the hardware counters
//   slow_ms=N          every call of a profiler that uses the device takes so long, with CUPTI's lock held
//   first_ms=N         the first start of each range profiler takes so long: much is set up only then
//   launch_ms=N        a kernel's launch takes so long between its two callbacks
//   pc_no_period=1     PC sampling takes no period
//   pc_dropped=N       it says with all data that N samples were dropped
//   pc_full=1          its hardware buffer is full
//   pc_nameless=1      functions have no names
//   pm_overflow=1      PM sampling's hardware buffer has overflowed

#include <cstdint>
#include <string>

namespace fake {

struct Script {
  std::uint32_t version = 130001;
  std::string failing;  // "": nothing fails
  std::uint64_t fail_at = 0;
  bool fail_on = false;
  int error = 0;
  std::string held;
  std::uint64_t thief_after = 0, thief_takes = 0;
  std::uint64_t drop = 0, zero = 0, reversed = 0, shifted = 0, early = 0, unheard = 0, grown = 0;
  std::uint64_t twice = 0, stray = 0, empty = 0, overlong = 0;
  std::uint64_t shuffle = 0, hide_nodes = 0, late_ms = 0, flush_ms = 0, lock = 0, keep = 0, incomplete = 0;
  std::uint64_t forbidden = 0, busy = 0, slow_ms = 0, first_ms = 0, launch_ms = 0;
  std::uint64_t pc_no_period = 0, pc_dropped = 0, pc_full = 0, pc_nameless = 0, pm_overflow = 0;
};

const Script& script();

}  // namespace fake
