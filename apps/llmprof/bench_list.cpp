// llmprof bench --list: the operators.

#include <fmt/format.h>

#include "base/json.h"
#include "bench_verb.h"
#include "report/layout.h"

namespace llmprof::app {
namespace {

using base::Json;
using bench::Operator;

std::string axes_text(const Operator& op) {
  std::string text;
  for (const bench::AxisSpec& axis : op.axes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", axis_flag(axis.name), axis.fallback);
  }
  return text;
}

std::string types_text(std::span<const bench::Type> types) {
  std::string text;
  for (const bench::Type type : types) text += fmt::format("{}{}", text.empty() ? "" : ", ", bench::type_name(type));
  return text;
}

std::string cpu_types_text(const Operator& op) {
  if (op.cpu == nullptr) return "";
  return op.cpu_types.empty() ? "float32" : types_text(op.cpu_types);
}

std::string implementations_text(const Operator& op) {
  std::string text;
  for (const bench::CudaImplementation& way : op.cuda) text += fmt::format("{}{}", text.empty() ? "" : ", ", way.name);
  return text.empty() ? "none" : text;
}

std::string operator_text(const Operator& op) {
  std::string text = fmt::format("{}: {}\n", op.name, op.summary);
  text += report::wrapped("axes  " + axes_text(op), 4);
  text += report::wrapped(fmt::format("GPU   {}; {}", types_text(op.types), implementations_text(op)), 4);
  if (op.cpu != nullptr) text += report::wrapped(fmt::format("CPU   {}", cpu_types_text(op)), 4);
  return text;
}

Json types_json(std::span<const bench::Type> types) {
  Json list = Json::array();
  for (const bench::Type type : types) list.push_back(bench::type_name(type));
  return list;
}

Json operator_json(const Operator& op) {
  constexpr bench::Type kFloat32[] = {bench::Type::kFloat32};
  Json json{{"name", op.name}, {"summary", op.summary}};
  json["axes"] = Json::array();
  for (const bench::AxisSpec& axis : op.axes) {
    json["axes"].push_back({{"name", axis.name},
                            {"flag", axis_flag(axis.name)},
                            {"values", axis.fallback},
                            {"least", axis.least},
                            {"meaning", axis.meaning}});
  }
  json["gpu_types"] = op.cuda.empty() ? Json::array() : types_json(op.types);
  json["cpu_types"] = op.cpu == nullptr ? Json::array() : types_json(op.cpu_types.empty() ? kFloat32 : op.cpu_types);
  json["implementations"] = Json::array();
  for (const bench::CudaImplementation& way : op.cuda) json["implementations"].push_back(way.name);
  return json;
}

}  // namespace

Result<int> list_operators(const Arguments& arguments) {
  if (arguments.on("--json")) {
    Json json = json_head("llmprof.bench_operators");
    json["operators"] = Json::array();
    for (const Operator* op : bench::operators()) json["operators"].push_back(operator_json(*op));
    print(base::to_text(json));
    return 0;
  }
  std::string text;
  for (const Operator* op : bench::operators()) text += operator_text(*op);
  print(text + "\nAxes stand with the values they have when nobody gives any. The first GPU type is the default.\n");
  return 0;
}

}  // namespace llmprof::app
