#include "host/stacks/remote_memory.h"

#include <sys/uio.h>
#include <algorithm>
#include <cstring>

namespace llmprof::host {

bool RemoteMemory::read_directly(pid_t pid, std::uint64_t address, void* out, std::size_t bytes) {
  iovec local{out, bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: an address of the other process
  return ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

bool RemoteMemory::read_scattered(const std::vector<iovec>& places, std::vector<std::uint8_t>& out) const {
  iovec local{out.data(), out.size()};
  return ::process_vm_readv(pid_, &local, 1, places.data(), places.size(), 0) == static_cast<ssize_t>(out.size());
}

void RemoteMemory::refresh() {
  std::array<iovec, kPages> local, remote;
  std::size_t count = 0;
  for (Page& page : pages_) {
    if (!page.used) page.address = kNoPage;
    page.used = false;
    if (page.address == kNoPage) continue;
    local[count] = {page.bytes.data(), kPageBytes};
    remote[count++] = {reinterpret_cast<void*>(page.address), kPageBytes};  // NOLINT: an address of the other process
  }
  if (count == 0) return;
  const ssize_t got = ::process_vm_readv(pid_, local.data(), count, remote.data(), count, 0);
  if (got == static_cast<ssize_t>(count * kPageBytes)) return;
  for (Page& page : pages_) page.address = kNoPage;  // one of them is gone
}

const RemoteMemory::Page* RemoteMemory::page(std::uint64_t address) {
  const std::uint64_t number = address / kPageBytes;
  Page& page = pages_[(number ^ number >> 5 ^ number >> 10) % kPages];
  page.used = true;
  if (page.address == number * kPageBytes) return &page;
  page.address = kNoPage;
  if (!read_directly(pid_, number * kPageBytes, page.bytes.data(), kPageBytes)) return nullptr;
  page.address = number * kPageBytes;
  return &page;
}

bool RemoteMemory::read(std::uint64_t address, void* out, std::size_t bytes) {
  auto* at = static_cast<std::uint8_t*>(out);
  while (bytes > 0) {
    const Page* from = page(address);
    if (from == nullptr) return false;
    const std::size_t inside = address % kPageBytes;
    const std::size_t part = std::min(bytes, kPageBytes - inside);
    std::memcpy(at, from->bytes.data() + inside, part);
    at += part;
    address += part;
    bytes -= part;
  }
  return true;
}

std::string RemoteMemory::text(std::uint64_t address, std::size_t most) {
  std::string out;
  while (out.size() < most) {
    const auto letter = value<char>(address + out.size());
    if (!letter) return "";
    if (*letter == '\0') break;
    out += *letter;
  }
  return out;
}

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
