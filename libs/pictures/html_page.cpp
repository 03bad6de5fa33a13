#include <fmt/format.h>

#include "base/asset.h"
#include "base/json.h"
#include "base/sha256.h"
#include "pictures/page_data.h"
#include "report/plot.h"

namespace llmprof::web {
std::span<const base::Asset> assets();  // what web/ was built to, packed in by cmake/LlmprofWeb.cmake
}

namespace llmprof::pictures {
namespace {

using base::Json;

std::string text_at(const Json& value, std::initializer_list<const char*> path) {
  const Json* at = &value;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

// What a browser without scripts shows: the headline and the findings.
std::string summary_text(const Json& data) {
  std::string text;
  for (const Json& run : data.value("runs", Json::array())) {
    text += fmt::format("<h2>{}</h2>\n", report::svg_escaped(text_at(run, {"name"})));
    const std::string headline = text_at(run, {"report", "diagnosis", "headline"});
    if (!headline.empty()) text += fmt::format("<p>{}</p>\n", report::svg_escaped(headline));
    if (headline.empty() || !run["report"]["diagnosis"].contains("findings")) continue;
    text += "<ol>\n";
    for (const Json& finding : run["report"]["diagnosis"]["findings"])
      text += fmt::format("<li>{}: {}</li>\n", report::svg_escaped(text_at(finding, {"title"})),
                          report::svg_escaped(text_at(finding, {"text"})));
    text += "</ol>\n";
  }
  return text;
}

std::string title_of(const Json& data) {
  std::string names;
  for (const Json& run : data.value("runs", Json::array()))
    names += (names.empty() ? "" : " and ") + text_at(run, {"name"});
  return names.empty() ? "llmprof" : names + " - llmprof";
}

}  // namespace

std::string script_json(const Json& data) {
  const std::string text = base::to_line(data);
  std::string out;
  out.reserve(text.size() + text.size() / 32);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else if (text.compare(i, 3, "\xe2\x80\xa8") == 0)
      out += "\\u2028", i += 2;
    else if (text.compare(i, 3, "\xe2\x80\xa9") == 0)
      out += "\\u2029", i += 2;
    else
      out += c;
  }
  return out;
}

Result<std::string> html_page(const Json& data) {
  const std::string_view script = base::find_asset(web::assets(), "app.js"),
                         style = base::find_asset(web::assets(), "app.css");
  // Both are our own build; the end of their element inside them would cut the page in two.
  if (script.empty() || script.find("</script") != std::string_view::npos ||
      style.find("</style") != std::string_view::npos)
    return Error{ErrorCode::kInternal, "this llmprof was built without its page", "build it again with npm installed"};
  return fmt::format(R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; connect-src 'none'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{}</title>
<style>{}</style>
</head>
<body>
<div id="app"></div>
<noscript>
<h1>{}</h1>
<p>This page draws with JavaScript, all of it inside this file. Without it there is this summary.</p>
{}</noscript>
<script type="application/json" id="data">{}</script>
<script>{}</script>
</body>
</html>
)",
                     base::sha256_source(script), base::sha256_source(style), report::svg_escaped(title_of(data)),
                     style, report::svg_escaped(title_of(data)), summary_text(data), script_json(data), script);
}

}  // namespace llmprof::pictures
