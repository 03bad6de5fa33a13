#include "view/secret.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/file.h"

namespace llmprof::view {

Result<std::string> make_secret() {
  std::array<std::uint8_t, 16> bytes{};
  ssize_t got = 0;
  do {
    got = ::getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(bytes.size())) return base::errno_error(ErrorCode::kIo, "getrandom", errno);
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

bool same_secret(std::string_view given, std::string_view expected) {
  if (given.size() != expected.size() || expected.empty()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    difference = static_cast<unsigned char>(difference | (given[i] ^ expected[i]));
  volatile unsigned char seen = difference;  // keeps the loop whole
  return seen == 0;
}

}  // namespace llmprof::view
