#pragma once
// Who gets an answer. Asked before anything else looks at a request.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "view/http.h"

namespace llmprof::view {

struct Site {
  std::uint16_t port = 0;
  std::string address;  // that it listens on beside loopback; "" none
  std::string token;    // in the fragment of the URL: whoever knows it gets the cookie
  std::string session;  // the cookie's value

  std::string cookie_name() const;  // cookies are shared by all ports of a host, so the port is in the name
  std::string set_cookie() const;
};

// An answer that says why there is none, or nothing: the request may be routed.
std::optional<Response> refuse(const Request& request, const Site& site);

// What only the user's own browser knows.

// 128 bits of the system's randomness in hexadecimal.
Result<std::string> make_secret();

// Compares in a time that does not depend on where they differ. Of unequal length: false.
bool same_secret(std::string_view given, std::string_view expected);

}  // namespace llmprof::view
