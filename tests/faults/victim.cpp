#include "victim.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "collect/testing/nvtx_client.h"

#ifdef FAULT_LARGE_TLS
thread_local volatile char large_thread_local[FAULT_LARGE_TLS];  // static: every thread's stack has to hold it
#endif

namespace fault {

Ledger::Ledger(const std::string& label, std::size_t streams, bool times) : label_(label) {
  const std::size_t bytes = 24 + streams * sizeof(Slot) + (times ? streams * kTimes * 8 : 0);
  const char* folder = std::getenv("FAULT_LEDGER");
  int descriptor = -1;
  if (folder != nullptr) {
    const mode_t before = umask(0);
    descriptor = open((std::string(folder) + "/" + label).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    umask(before);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) std::_Exit(98);
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      descriptor >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, descriptor, 0);
  if (memory == MAP_FAILED) std::_Exit(97);
  if (descriptor >= 0) close(descriptor);
  auto* head = static_cast<std::uint64_t*>(memory);
  head[0] = streams;
  head[1] = times ? 1 : 0;
  head[2] = static_cast<std::uint64_t>(getpid());
  slots_ = reinterpret_cast<Slot*>(head + 3);
  if (times) times_ = reinterpret_cast<std::uint64_t*>(slots_ + streams);
  nvtx_client::ready();  // the client loads the tool now, which may change errno; its events must not
}

void Ledger::emit(std::size_t stream) {
  Slot& slot = slots_[stream];
  const std::uint64_t sequence = slot.attempted.load(std::memory_order_relaxed);
  slot.attempted.store(sequence + 1, std::memory_order_relaxed);
  nvtxEventAttributes_t event;
  std::memset(&event, 0, sizeof(event));
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = static_cast<std::uint64_t>(stream) << 32 | sequence;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = label_.c_str();
  errno = 77;
  nvtxMarkEx(&event);
  if (errno != 77) std::_Exit(96);  // the program's errno is not the profiler's
  if (times_ != nullptr) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    times_[stream * kTimes + sequence % kTimes] = static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + now.tv_nsec;
  }
  slot.done.store(sequence + 1, std::memory_order_relaxed);
}

void Ledger::emit(std::size_t stream, std::uint64_t count, unsigned pause_us) {
  for (std::uint64_t i = 0; i < count; ++i) {
    emit(stream);
    if (pause_us > 0) usleep(pause_us);
  }
}

long number(const Arguments& arguments, std::size_t index, long fallback) {
  return index < arguments.size() ? std::atol(arguments[index].c_str()) : fallback;
}

void print_process_state() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    for (const char* wanted : {"SigBlk:", "SigIgn:", "SigCgt:", "Umask:", "NoNewPrivs:", "Seccomp:"}) {
      if (line.rfind(wanted, 0) != 0) continue;
      // Without signals 32 and 33: the C library takes these for itself as soon as there is a second thread.
      const unsigned long bits = std::strtoul(line.c_str() + std::strlen(wanted), nullptr, 16);
      std::printf("%s %lx\n", wanted, bits & ~(3ul << 31));
    }
  }
  std::fflush(stdout);
}

}  // namespace fault

// `victim SCENARIO LABEL [ARGUMENT…]`
int main(int argc, char** argv) {
#ifdef FAULT_LARGE_TLS
  large_thread_local[0] = 1;
#endif
  if (argc < 3) return 99;
  for (const fault::Scenarios& group : {fault::endings(), fault::processes(), fault::threads(), fault::limits()}) {
    for (std::size_t i = 0; i < group.count; ++i) {
      if (std::strcmp(group.rows[i].name, argv[1]) == 0) return group.rows[i].run({argv + 2, argv + argc});
    }
  }
  return 99;
}
