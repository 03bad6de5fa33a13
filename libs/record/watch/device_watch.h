#pragma once
// Devices read beside a launch by a process of its own, which tells this one through a pipe. A driver that hangs takes
// only that process with it: it is asked to end, killed when it does not, and never waited for. It holds none of our
// files open. Telemetry and samples of counters speak the same way; what they say goes into the recorder's log.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/host_log.h"
#include "hw/telemetry/telemetry.h"
#include "record/run/capture.h"
#include "trace/loss.h"

namespace llmprof::record {

// What the child tells; the pipe carries the head as it is, then text and values.
struct WatchHead {
  enum class Kind : std::uint32_t {
    kDevice,   // there is this device, `text` is its name; before its first reading
    kReady,    // that were all devices
    kMetric,   // the next metric of the samples of a device, by the chip's own name
    kReading,  // of telemetry
    kSample,   // of counters: `values` in the order of the metrics
    kLoss,     // `loss`, `count` and `text` are to be noted
    kNote,     // `text` is for people
    kSlowed,   // at the end: what was read less often than wanted
    kCost,     // at the end: what the calls of one kind took
    kNone,     // there is nothing to read; `text` says why
  };
  Kind kind = Kind::kSample;
  std::uint32_t device = 0;
  bool is_gpu = true;                         // device
  std::uint64_t uuid_high = 0, uuid_low = 0;  // device
  std::uint64_t begin_ns = 0, end_ns = 0;     // sample: CLOCK_MONOTONIC_RAW
  hw::Reading reading;
  trace::Loss loss = trace::Loss::kNone;
  std::uint64_t count = 0;
};
struct WatchEvent : WatchHead {
  std::string text;
  std::vector<double> values;
};

void append(std::string& bytes, const WatchEvent& event);
// The first event of `bytes`, which then begins behind it. False: there is no whole one (yet).
bool take(std::string_view& bytes, WatchEvent& event);

// The child's end of the pipe, which does not block: what finds no room waits here, readings and samples up to a limit.
class WatchSender {
 public:
  explicit WatchSender(int events) : events_(events) {}
  void add(const WatchEvent& event);
  void say(WatchEvent::Kind kind, std::string text) { add({{.kind = kind}, std::move(text), {}}); }
  void loss(trace::Loss loss, std::uint64_t count, std::string text) {
    add({{.kind = WatchEvent::Kind::kLoss, .loss = loss, .count = count}, std::move(text), {}});
  }
  void send();
  void send_all();                                                 // the last words: waits for the parent, a while
  int waits_for() const { return bytes_.empty() ? -1 : events_; }  // a descriptor that should become writable
  std::uint64_t dropped() const { return dropped_; }

 private:
  int events_;
  std::string bytes_;
  std::uint64_t dropped_ = 0;
};

class WatchChild {
 public:
  // What the child does: with what it tells the parent by, and a descriptor that is ready to be read when there is a
  // word of the parent's, and at its end when it is time to end.
  using Body = std::function<void(WatchSender& sender, int orders)>;

  // Forks. To be called while this process has one thread.
  static Result<std::unique_ptr<WatchChild>> start(const Body& body);
  ~WatchChild();
  WatchChild(const WatchChild&) = delete;
  WatchChild& operator=(const WatchChild&) = delete;

  std::vector<WatchEvent> receive();          // that came by now; does not wait
  int descriptor() const { return events_; }  // ready to be read when there is something
  bool ended() const { return ended_; }       // nothing more will come
  void tell(char word) const;                 // to the child; lost where it does not listen
  // Asks it to end, which it does with what it has. False: it did not answer in time and was abandoned.
  bool stop(std::chrono::milliseconds patience = std::chrono::milliseconds(100));

 private:
  WatchChild(pid_t pid, int events, int orders) : pid_(pid), events_(events), orders_(orders) {}
  bool read_some();

  pid_t pid_;
  int events_, orders_;
  bool ended_ = false;
  std::string bytes_;  // received, not yet taken
};

// The parent's side: takes what a child tells and writes it into the recorder's log. Where there is no child, nothing
// happens.
class DeviceWatch {
 public:
  // Takes what came; true: there is something to write. One thread at a time.
  bool receive();
  void write(host::HostLog& log);  // what was received
  void stop();                     // the program ended, or the recording reached its size
  void finish(CaptureInfo& info);  // notes the losses
  // The devices' counters may not be read here, or are held by others: NVML's activity is what is left.
  bool refused();

 protected:
  struct Manner {
    std::string_view subject;                // of its notes
    trace::Loss failed;                      // that the child could not be started, or did not answer
    std::chrono::milliseconds patience;      // at the end
    std::chrono::nanoseconds may_be_silent;  // so soon after its start a child that found no device need not answer
    std::uint32_t first_device;              // numbers of its devices in the log begin here
  };
  explicit DeviceWatch(const Manner& manner) : manner_(manner) {}
  void begin(Result<std::unique_ptr<WatchChild>> child);
  void tell(char word);

 private:
  void take(std::vector<WatchEvent> events);
  void write_device(const WatchEvent& event, host::HostLog& log) const;
  void write_samples(std::vector<const WatchEvent*>& samples, host::HostLog& log);  // and forgets them

  Manner manner_;
  std::mutex mutex_;  // the sampler's thread receives, the main thread stops
  std::unique_ptr<WatchChild> child_;
  std::uint64_t begin_ns_ = 0;
  std::vector<WatchEvent> received_;
  std::map<std::uint32_t, std::vector<std::string>> metrics_;  // of each device
  std::vector<NotedLoss> losses_;
  bool found_ = false;  // a device
  bool refused_ = false;
  std::uint32_t measurement_ = 0;
};

}  // namespace llmprof::record
