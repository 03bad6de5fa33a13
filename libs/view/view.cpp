#include "view/view.h"

#include <fmt/format.h>

#include "base/asset.h"
#include "view/content.h"
#include "view/listen.h"
#include "view/routes.h"
#include "view/secret.h"
#include "view/server.h"

namespace llmprof::web {
std::span<const base::Asset> assets();  // of libs/pictures
}

namespace llmprof::view {

Result<void> serve(const Settings& settings, const std::function<void(const Ready&)>& ready,
                   const std::atomic<bool>& stop) {
  LLMPROF_LET(QueryProcess process, QueryProcess::start());  // first: nothing is open yet, and no thread runs
  LLMPROF_LET(Listeners listeners, listen_on(settings.listen, settings.port, settings.understood));
  LLMPROF_LET(const std::unique_ptr<Runs> runs,
              Runs::open(settings.runs, [&](const base::ProgressUpdate&) { return !stop.load(); }));
  Site site{.port = listeners.port, .address = listeners.address, .token = {}, .session = {}};
  LLMPROF_LET(site.token, make_secret());
  LLMPROF_LET(site.session, make_secret());
  LLMPROF_LET(Server server, Server::create(std::move(listeners), site));
  QueryQueue queries(std::move(process),
                     [&](std::uint64_t ticket, Response response) { server.answer(ticket, std::move(response)); });
  const RunContent content(*runs, queries, settings.allow_sql);
  const Routes routes{server.site(), content, web::assets(), settings.allow_sql};
  runs->start();
  ready(
      {fmt::format("http://{}:{}/#token={}", site.address.empty() ? "127.0.0.1" : site.address, site.port, site.token),
       site.port});
  return server.run([&](const Request& request, Server::Ticket ticket) { return route(routes, request, ticket); }, stop,
                    std::chrono::seconds(settings.idle_seconds));
}

}  // namespace llmprof::view
