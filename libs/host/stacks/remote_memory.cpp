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

void RemoteMemory::forget() {
  for (Page& page : pages_) page.address = ~std::uint64_t{0};
}

const RemoteMemory::Page* RemoteMemory::page(std::uint64_t address) {
  const std::uint64_t number = address / kPageBytes;
  Page& page = pages_[(number ^ number >> 5 ^ number >> 10) % kPages];
  if (page.address == number * kPageBytes) return &page;
  page.address = ~std::uint64_t{0};
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

}  // namespace llmprof::host
