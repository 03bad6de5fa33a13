#include "view/guard.h"

#include <fmt/format.h>

#include <sys/random.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/file.h"

namespace llmprof::view {

namespace {

// A page of another site that resolves to this machine (DNS rebinding) has that site's name as Host.
bool is_ours(std::string_view host, const Site& site) {
  for (const std::string_view name : {std::string_view("127.0.0.1"), std::string_view("localhost"),
                                      std::string_view("[::1]"), std::string_view(site.address)}) {
    if (!name.empty() && host == fmt::format("{}:{}", name, site.port)) return true;
  }
  return false;
}

bool has_cookie(const Request& request, const Site& site) {
  const std::string* cookies = request.header("cookie");
  if (cookies == nullptr) return false;
  const std::string name = site.cookie_name() + "=";
  std::string_view rest = *cookies;
  while (!rest.empty()) {
    const std::string_view each = rest.substr(0, rest.find(';'));
    rest.remove_prefix(each.size() < rest.size() ? each.size() + 1 : rest.size());
    const std::string_view pair = each.substr(std::min(each.find_first_not_of(' '), each.size()));
    if (pair.starts_with(name)) return same_secret(pair.substr(name.size()), site.session);
  }
  return false;
}

// What another site's page makes the browser send.
bool is_foreign(const Request& request) {
  const std::string* origin = request.header("origin");
  if (request.count("origin") != 0 && (origin == nullptr || *origin != "http://" + *request.header("host")))
    return true;
  const std::string* from = request.header("sec-fetch-site");
  return request.count("sec-fetch-site") != 0 && (from == nullptr || (*from != "same-origin" && *from != "none"));
}

bool is_json(const Request& request) {
  const std::string* type = request.header("content-type");
  return type != nullptr && *type == "application/json";
}

}  // namespace

std::string Site::cookie_name() const { return fmt::format("llmprof_{}", port); }

std::string Site::set_cookie() const {
  return fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name(), session);
}

std::optional<Response> refuse(const Request& request, const Site& site) {
  const std::string* host = request.header("host");
  if (host == nullptr || !is_ours(*host, site) || request.target.find("://") != std::string::npos)
    return refusal(421, "this server answers for this machine's own names only");
  const bool post = request.method == "POST";
  if (!post && request.method != "GET" && request.method != "HEAD") return refusal(405, "GET, HEAD and POST only");
  if (!request.target.starts_with('/')) return refusal(400, "no path");
  if (is_foreign(request)) return refusal(403, "asked for by another site");
  if (!post && !request.body.empty()) return refusal(400, "a body without POST");
  if (post && !is_json(request)) return refusal(415, "POST takes application/json");
  // The one call that makes the cookie; it asks for the token itself.
  if (post && request.target == "/api/session") return std::nullopt;
  if ((post || request.target.starts_with("/api/")) && !has_cookie(request, site))
    return refusal(401, "open the URL that llmprof view printed");
  return std::nullopt;
}

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
