#include "host/stacks/stack_tail.h"

#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace llmprof::host {

void StackTail::load() {
  constexpr std::size_t kPageBytes = 4096;
  std::vector<std::uint8_t> read(before_.size() + most_);
  const std::uint64_t from = begin_ - before_.size();
  iovec local{read.data(), read.size()};
  std::vector<iovec> remote;  // by pages: those behind the end of the stack do not spoil the others
  for (std::uint64_t at = from; at < from + read.size();) {
    const std::uint64_t next = std::min((at / kPageBytes + 1) * kPageBytes, from + read.size());
    remote.push_back({reinterpret_cast<void*>(at), next - at});  // NOLINT: an address of the other process
    at = next;
  }
  const ssize_t got = ::process_vm_readv(pid_, &local, 1, remote.data(), remote.size(), 0);
  if (got < static_cast<ssize_t>(before_.size()) || !std::equal(before_.begin(), before_.end(), read.begin())) return;
  bytes_.assign(read.begin() + static_cast<std::ptrdiff_t>(before_.size()), read.begin() + got);
}

bool StackTail::copy(std::uint64_t address, void* out, std::size_t bytes) {
  if (address < begin_ || address - begin_ >= most_) return false;
  if (!loaded_) load();
  loaded_ = true;
  if (bytes > bytes_.size() || address - begin_ > bytes_.size() - bytes) return false;
  std::memcpy(out, bytes_.data() + (address - begin_), bytes);
  return true;
}

}  // namespace llmprof::host
