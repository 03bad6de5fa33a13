#pragma once
// Who gets an answer (RELIABILITY W2 to W4). Asked before anything else looks at a request.

#include <cstdint>
#include <optional>
#include <string>

#include "view/http_request.h"
#include "view/http_response.h"

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

}  // namespace llmprof::view
