// The same requests as their client and as their server saw them, joined by name. From the client's schedule to its
// first token, in order: client queue, before the engine, the server's TTFT, after; they add up to the client's TTFT.

#include <algorithm>
#include <unordered_map>

#include "analyze/requests/answers.h"

namespace llmprof::analyze {
namespace {

using Ns = std::optional<std::int64_t>;

Ns between(const Ns& from, const Ns& to) {
  if (!from || !to) return std::nullopt;
  return *to - *from;
}

struct Pair {
  Ns queue, before, server, after, client;
};

Pair pair_of(const RequestFigures& client, const RequestFigures& server) {
  const Ns scheduled = client.arrival_seen ? Ns(client.arrival_ns) : std::nullopt;
  const Ns arrived = server.arrival_seen ? Ns(server.arrival_ns) : std::nullopt;
  return {between(scheduled, client.sent_ns), between(client.sent_ns, arrived), server.ttft_ns,
          between(server.first_token_ns, client.first_token_ns), between(scheduled, client.first_token_ns)};
}

bool claimed(const Ns& value, const Ns& error_ns) { return value && error_ns && std::abs(*value) > *error_ns; }

// Distribution over the pairs; what is no more than the error of the clocks is not told.
void add_interval(const char* name, const char* definition, std::vector<std::int64_t> values, const Ns& error_ns,
                  RequestSides& sides) {
  if (values.empty()) return;
  std::ranges::sort(values);
  SideInterval out{.interval = name, .definition = definition, .count = std::ssize(values), .error_ns = error_ns};
  const auto told = [&](double q) -> Ns {
    const std::int64_t value = values[static_cast<std::size_t>(quantile_rank(std::ssize(values), q) - 1)];
    return error_ns && (*error_ns == 0 || claimed(value, error_ns)) ? Ns(value) : std::nullopt;
  };
  out.p50_ns = told(0.5), out.p90_ns = told(0.9), out.p99_ns = told(0.99), out.most_ns = told(1);
  if (error_ns && *error_ns > 0)
    out.within_error = std::ranges::count_if(values, [&](std::int64_t value) { return !claimed(value, error_ns); });
  sides.intervals.push_back(std::move(out));
}

void add_one_sided(const RequestFigures& request, RequestSides& sides) {
  sides.unmatched.push_back({request.name, request.source, request.status, request.error, request.arrival_ns});
}

// By name; a name that comes twice joins nothing.
std::unordered_map<std::string, const RequestFigures*> by_name(const std::vector<RequestFigures>& requests) {
  std::unordered_map<std::string, const RequestFigures*> out;
  for (const RequestFigures& request : requests) {
    if (request.name.empty()) continue;
    const auto [found, fresh] = out.try_emplace(request.name, &request);
    if (!fresh) found->second = nullptr;
  }
  return out;
}

}  // namespace

void add_sides(const std::vector<RequestFigures>& client, std::optional<std::int64_t> clock_error_ns, Requests& all) {
  const auto clients = by_name(client), servers = by_name(all.all);
  RequestSides sides{.clock_error_ns = clock_error_ns};
  std::vector<std::int64_t> queue, before, server, after, ttft;
  for (RequestFigures& request : all.all) {
    const auto own = servers.find(request.name);
    const auto found = clients.find(request.name);
    if (own == servers.end() || own->second == nullptr || found == clients.end() || found->second == nullptr) {
      if (!request.warm_up) ++sides.only_server, add_one_sided(request, sides);
      continue;
    }
    if (request.warm_up) continue;
    ++sides.both;
    const Pair pair = pair_of(*found->second, request);
    request.client_queue_ns = pair.queue, request.client_ttft_ns = pair.client;
    for (const auto& [from, into] :
         {std::pair(&pair.before, &request.before_ns), std::pair(&pair.after, &request.after_ns)}) {
      if (clock_error_ns && *from && (*clock_error_ns == 0 || claimed(*from, clock_error_ns))) *into = *from;
    }
    if (clock_error_ns && pair.before && *pair.before < -*clock_error_ns) ++sides.impossible;
    if (pair.queue) queue.push_back(*pair.queue);
    if (pair.before) before.push_back(*pair.before);
    if (pair.server) server.push_back(*pair.server);
    if (pair.after) after.push_back(*pair.after);
    if (pair.client) ttft.push_back(*pair.client);
  }
  for (const RequestFigures& request : client) {
    if (request.warm_up) continue;
    const auto found = servers.find(request.name);
    if (found != servers.end() && found->second != nullptr && clients.at(request.name) != nullptr) continue;
    ++sides.only_client;
    add_one_sided(request, sides);
  }
  add_interval("client queue", "wanted by the schedule until sent", std::move(queue), 0, sides);
  add_interval("before the engine", "sent until the server's engine had it: network, front end", std::move(before),
               clock_error_ns, sides);
  add_interval("server TTFT", "from there to the server's first token", std::move(server), 0, sides);
  add_interval("after", "the server's first token until the client had it", std::move(after), clock_error_ns, sides);
  add_interval("client TTFT", "wanted by the schedule until the client's first token: all of these", std::move(ttft), 0,
               sides);
  all.sides = std::move(sides);
}

}  // namespace llmprof::analyze
