#include "host/stacks/sampled_stack.h"

#include <sys/uio.h>

#include <algorithm>

namespace llmprof::host {

void StackTail::load() {
  constexpr std::size_t kPageBytes = 4096;
  std::vector<std::uint8_t> bytes(before_.size() + most_);
  const std::uint64_t from = begin_ - before_.size();
  iovec local{bytes.data(), bytes.size()};
  std::vector<iovec> remote;  // by pages: those behind the end of the stack do not spoil the others
  for (std::uint64_t at = from; at < from + bytes.size();) {
    const std::uint64_t next = std::min((at / kPageBytes + 1) * kPageBytes, from + bytes.size());
    remote.push_back({reinterpret_cast<void*>(at), next - at});  // NOLINT: an address of the other process
    at = next;
  }
  const ssize_t got = ::process_vm_readv(pid_, &local, 1, remote.data(), remote.size(), 0);
  if (got < static_cast<ssize_t>(before_.size()) || !std::equal(before_.begin(), before_.end(), bytes.begin())) return;
  bytes_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(before_.size()), bytes.begin() + got);
}

bool StackTail::read(std::uint64_t address, void* out, std::size_t bytes) {
  if (address < begin_ || address - begin_ >= most_) return false;
  if (!loaded_) load();
  loaded_ = true;
  if (bytes > bytes_.size() || address - begin_ > bytes_.size() - bytes) return false;
  std::memcpy(out, bytes_.data() + (address - begin_), bytes);
  return true;
}

}  // namespace llmprof::host
