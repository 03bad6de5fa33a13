#include "record/control_socket.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "record/control.h"

namespace llmprof::record {
namespace {

constexpr int kWaiting = 8;  // connections

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: the path of a socket has 1 to {} bytes, this one {}", path,
                             sizeof address.sun_path - 1, path.size()),
                 "choose a shorter one, for example in /tmp"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<int> new_socket() {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return base::errno_error(ErrorCode::kIo, "socket", errno);
  return socket;
}

// Whether the name is free, or a socket that nobody listens at (which is taken away).
Result<void> make_free(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) {
    return Error{ErrorCode::kUsage, path + " exists and is not a socket", "choose another path for the socket"};
  }
  LLMPROF_LET(const int socket, new_socket());
  const bool used = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  if (used) return Error{ErrorCode::kUsage, path + " belongs to another recording", "choose another path"};
  ::unlink(path.c_str());
  return {};
}

}  // namespace

Result<int> listen_at(const std::string& path) {
  LLMPROF_LET(const sockaddr_un address, address_of(path));
  LLMPROF_TRY(make_free(path, address));
  LLMPROF_LET(const int socket, new_socket());
  ::fchmod(socket, 0600);  // before it has a name, so that it never was open to others
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket, kWaiting) == 0) {
    return socket;
  }
  Error error = base::errno_error(ErrorCode::kIo, path, errno);
  error.message = fmt::format("the control socket cannot be made: {}", error.message);
  error.hint = "choose a folder that you may write to";
  ::close(socket);
  return error;
}

Result<int> connect_to(const std::string& path) {
  LLMPROF_LET(const sockaddr_un address, address_of(path));
  LLMPROF_LET(const int socket, new_socket());
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  Error error = base::errno_error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path, errno);
  error.hint = "is `llmprof record --control " + path + " …` running?";
  ::close(socket);
  return error;
}

Result<std::string> ask_control(const std::string& path, const std::string& command) {
  LLMPROF_LET(const int socket, connect_to(path));
  const std::string line = command + "\n";
  std::string answer;
  char bytes[512];
  ssize_t count = ::send(socket, line.data(), line.size(), MSG_NOSIGNAL);
  while (count > 0 && answer.find('\n') == std::string::npos) {
    count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count > 0) answer.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(socket);
  if (answer.find('\n') == std::string::npos) {
    return Error{ErrorCode::kIo, path + ": the recording ended before it answered", ""};
  }
  return answer.substr(0, answer.find('\n'));
}

}  // namespace llmprof::record
