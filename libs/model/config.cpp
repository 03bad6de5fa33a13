// config.json to Config: finds the language model in it, asks its family, and reads what all families share.

#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text_table.h"
#include "model/families.h"
#include "model/quantization.h"

namespace llmprof::model {

namespace {

constexpr std::size_t kMaxTextBytes = 16u << 20;  // the longest lists of ignored modules have some 100 kB
constexpr std::size_t kMaxKeys = 10'000;          // the JSON library looks through all keys of an object for each one
// More parameters than any machine holds; below it no product of the analysis overflows 64 bits.
constexpr double kMaxParameters = 1e15;

std::string shown(std::string_view text) { return base::shorten(base::printable(text), 40); }

std::size_t keys_of(std::string_view json_text) {
  std::size_t keys = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json_text.size(); ++i) {
    const char letter = json_text[i];
    if (letter == '"') in_string = !in_string;
    if (letter == ':' && !in_string) ++keys;
    if (letter == '\\') ++i;  // what it escapes
  }
  return keys;
}

Result<base::Json> parse_text(std::string_view json_text, std::string_view where) {
  if (json_text.size() > kMaxTextBytes) {
    return Error{ErrorCode::kCorruptInput,
                 fmt::format("{}: {} MB, at most {} MB are read", where, json_text.size() / 1'000'000,
                             kMaxTextBytes / 1'000'000),
                 "is this the config.json of the model?"};
  }
  if (const std::size_t keys = keys_of(json_text); keys > kMaxKeys) {
    return Error{ErrorCode::kCorruptInput, fmt::format("{}: {} keys, at most {} are read", where, keys, kMaxKeys),
                 "is this the config.json of the model?"};
  }
  LLMPROF_LET(base::Json json, base::parse_json(json_text, where));
  if (!json.is_object()) return Error{ErrorCode::kCorruptInput, fmt::format("{}: not a JSON object", where), ""};
  return json;
}

std::string known_families() {
  std::string names;
  for (const Family* family : families()) {
    if (!family->model_types.empty()) names += (names.empty() ? "" : ", ") + std::string(family->name);
  }
  return names;
}

// A key of every decoder, as the families spell it, that is not there.
std::string_view missing_key(const Fields& fields) {
  constexpr std::string_view kNeeded[][4] = {{"hidden_size", "n_embd", "d_model", "dim"},
                                             {"num_hidden_layers", "n_layer", "num_layers", "n_layers"},
                                             {"num_attention_heads", "n_head", "num_heads", "n_heads"},
                                             {"vocab_size", "vocab_size", "vocab_size", "padded_vocab_size"}};
  for (const auto& spellings : kNeeded) {
    if (std::ranges::none_of(spellings, [&](std::string_view key) { return fields.has(key); })) return spellings[0];
  }
  return "";
}

const Family* family_of(Fields& fields, std::string_view outer_type) {
  if (!fields.has("model_type") && outer_type.empty()) {
    fields.reject(ErrorCode::kCorruptInput, "model_type is missing", "is this the config.json of the model?");
  }
  const std::string type = fields.text_or("model_type", outer_type);
  if (fields.error()) return nullptr;
  if (const Family* family = family_of_model_type(type)) return family;
  const bool encoder = fields.find("is_encoder_decoder") != nullptr && fields.flag_or("is_encoder_decoder", false);
  const std::string_view missing = missing_key(fields);
  if (!fields.error() && (encoder || !missing.empty())) {
    const std::string why = encoder ? "it has an encoder" : fmt::format("{} is missing", missing);
    fields.reject(
        ErrorCode::kUnsupported,
        fmt::format("model_type: \"{}\" is not known and {}: shape analysis limited to decoder-only transformers",
                    shown(type), why),
        fmt::format("known families: {}. Without shapes, the headers of its weights still say how many values and "
                    "bytes they are: give the folder or file that holds them",
                    known_families()));
    return nullptr;
  }
  fields.caveat("model_type", fmt::format("\"{}\" is not known: analysed as a Llama-like decoder, limited to the keys "
                                          "that such decoders have; all numbers are estimates",
                                          shown(type)));
  return find_family("generic");
}

// ---- types ---------------------------------------------------------------------------------------------------------

// The types that a pass computes in.
std::optional<Number> plain_type(std::string_view name) {
  const std::optional<Number> number = number_of(name);
  return number && number->type.find("float") != std::string::npos ? number : std::nullopt;
}

void read_type(Fields& fields, bool quantised, Config& config) {
  const char* key = fields.has("dtype") ? "dtype" : "torch_dtype";  // newer files, older files
  fields.ignore({"dtype", "torch_dtype"});
  // Without one, transformers builds a model in torch's default type. Nobody quantises for that one (GPT-OSS's file).
  const bool guessed = !fields.has(key) && quantised;
  if (guessed) fields.caveat("dtype", "not given: what is not quantised is counted as bfloat16");
  const std::string name = fields.text_or(key, guessed ? "bfloat16" : "float32");
  const std::optional<Number> number = plain_type(name == "auto" ? "float32" : name);
  if (!number) {
    fields.reject(ErrorCode::kUnsupported, fmt::format("{}: \"{}\" is not supported", key, shown(name)),
                  "known types: float32, bfloat16, float16, float8_e4m3");
    return;
  }
  // Nothing but matrices is kept in less than 16 bits.
  config.set_type(number->bytes >= 2 ? *number : Number{"bfloat16", 2});
  config.weight = *number;
}

void read_cache_type(Fields& fields, Config& config) {
  for (const char* key : {"kv_cache_dtype", "cache_dtype"}) {
    const std::string name = fields.text_or(key, "auto");
    if (name == "auto" || fields.error()) continue;
    if (const std::optional<Number> number = number_of(name)) {
      config.kv = *number;
    } else {
      fields.caveat(key,
                    fmt::format("\"{}\" is not understood: the cache is counted as {}", shown(name), config.kv.type));
    }
  }
}

// ---- sizes ---------------------------------------------------------------------------------------------------------

double most_parameters(const Config& config, const LayerKind& kind) {
  const Attention& a = kind.attention;
  const Mlp& m = kind.mlp;
  const double hidden = static_cast<double>(config.hidden), heads = static_cast<double>(a.heads);
  const double head_dims = static_cast<double>(a.qk_dim) + static_cast<double>(a.v_dim);
  const double wide = static_cast<double>(std::max({config.hidden, a.q_rank, a.kv_rank + a.rope_dim}));
  const double attention = wide * (3 * heads * head_dims + static_cast<double>(a.q_rank + a.kv_rank + a.rope_dim));
  const double experts = static_cast<double>(std::max<std::int64_t>(m.experts, 1));
  const double mlp = 3 * (hidden + 1) * (static_cast<double>(m.width) * experts + static_cast<double>(m.shared_width));
  return attention + mlp + hidden * (experts + 8);
}

// In floating point: the product of absurd sizes must not wrap before it is refused.
void check_size(Fields& fields, const Config& config) {
  double total = 2 * static_cast<double>(config.vocab + config.positions) * static_cast<double>(config.hidden);
  for (const std::uint32_t kind : config.kind_of_layer) total += most_parameters(config, config.kinds[kind]);
  if (total > kMaxParameters) {
    fields.reject(ErrorCode::kCorruptInput, fmt::format("the sizes make a model of up to {:.1e} parameters", total),
                  "check the sizes in the file");
  }
}

// ---- the parts of a file -------------------------------------------------------------------------------------------

constexpr std::string_view kLanguageParts[] = {"text_config", "language_config", "llm_config"};
constexpr std::string_view kOtherParts[] = {"vision_config", "audio_config", "speech_config", "vq_config"};

std::string_view language_part(const base::Json& json) {
  for (const std::string_view key : kLanguageParts) {
    const auto found = json.find(std::string(key));
    if (found != json.end() && found->is_object() && !found->empty()) return key;
  }
  return "";
}

void note_what_is_left_out(Fields& fields) {
  if (fields.has("auto_map")) fields.note("auto_map", "names code, which is never executed or fetched");
  for (const std::string_view part : kOtherParts) {
    if (fields.find(part) != nullptr) fields.note(part, "not analysed: all numbers are the language model's");
  }
  const std::int64_t predicting = fields.zero_or_more("num_nextn_predict_layers", 0);
  if (predicting > 0) {
    fields.note("num_nextn_predict_layers",
                fmt::format("{} layer{} for predicting further tokens {} no part of a pass and not counted", predicting,
                            predicting == 1 ? "" : "s", predicting == 1 ? "is" : "are"));
  }
}

void take(std::vector<Caveat>& to, std::vector<Caveat>& from) {
  std::ranges::move(from, std::back_inserter(to));
  from.clear();
}

// Of what belongs to the whole file, the language model's own word counts first.
void read_shared(Fields& fields, Fields& outer, Config& config) {
  const auto place_of = [&](std::string_view key) -> Fields& { return fields.has(key) ? fields : outer; };
  if (!fields.has("tie_word_embeddings")) {
    config.tied_embeddings = outer.flag_or("tie_word_embeddings", config.tied_embeddings);
  }
  Fields& quantised = place_of("quantization_config");
  read_type(place_of(fields.has("torch_dtype") ? "torch_dtype" : "dtype"), quantised.has("quantization_config"),
            config);
  read_quantization(quantised, config);
  read_cache_type(place_of("kv_cache_dtype"), config);
  outer.ignore(
      {"dtype", "torch_dtype", "tie_word_embeddings", "quantization_config", "quantization", "kv_cache_dtype"});
}

Result<Config> read_model(Fields& fields, Fields& outer) {
  const bool nested = &outer != &fields;
  const Family* family = family_of(fields, nested ? outer.text_or("model_type", "") : "");
  if (fields.error()) return *fields.error();
  Config config = family->read(fields);
  if (config.family.empty()) config.family = family->name;
  read_shared(fields, outer, config);
  note_what_is_left_out(outer);
  if (nested) note_what_is_left_out(fields);
  if (!fields.error()) check_size(fields, config);
  if (fields.error()) return *fields.error();
  if (outer.error()) return *outer.error();
  fields.add_unread_caveats();
  if (nested) outer.add_unread_caveats();
  for (Fields* part : {&fields, &outer}) {
    take(config.caveats, part->caveats);
    take(config.notes, part->notes);
  }
  return config;
}

Result<Number> known(const std::string& type, std::string_view option) {
  if (const std::optional<Number> number = number_of(type)) return *number;
  return Error{ErrorCode::kUsage, fmt::format("{}: '{}' is not a type of numbers", option, type),
               "for example float32, bfloat16, float8, int8, int4, mxfp4, q4_k"};
}

// Weights narrower than 16 bits are those of the layers' matrices; embeddings, norms and logits keep their type, and
// activations stay wide. Products of float8 weights run in float8; other narrow weights are widened first.
void set_weights(Config& config, const Number& number) {
  config.stored.clear();
  config.quantization.reset();
  if (number.bytes >= 2) return config.set_type(number);
  const bool float8 = number.type.starts_with("float8");
  config.quantization =
      Quantization{.method = "--dtype", .weight = number, .arithmetic = float8 ? number.type : "", .ignore = {}};
}

}  // namespace

Result<Config> parse_config(std::string_view json_text, std::string_view where) {
  LLMPROF_LET(const base::Json json, parse_text(json_text, where));
  Fields whole(json, where);
  const std::string_view part = language_part(json);
  if (part.empty()) return read_model(whole, whole);
  whole.ignore({part});
  Fields language(*json.find(std::string(part)), whole, part);
  return read_model(language, whole);
}

void Config::set_type(const Number& number) {
  weight = kv = activation = number;
  arithmetic = number.type;
}

void add_layer(Config& config, const LayerKind& kind) {
  const auto found = std::ranges::find(config.kinds, kind);
  config.kind_of_layer.push_back(static_cast<std::uint32_t>(found - config.kinds.begin()));
  if (found == config.kinds.end()) config.kinds.push_back(kind);
}

void set_layers(Config& config, std::int64_t layers, const LayerKind& kind) {
  config.kinds = {kind};
  config.kind_of_layer.assign(static_cast<std::size_t>(layers), 0);
}

// ---- the types that a user asks for instead of the config's own ----------------------------------------------------

Result<void> set_types(Config& config, const Types& types) {
  if (!types.weights.empty()) {
    LLMPROF_LET(const Number number, known(types.weights, "--dtype"));
    set_weights(config, number);
  }
  if (!types.kv.empty()) {
    LLMPROF_LET(config.kv, known(types.kv, "--kv-dtype"));
  }
  if (!types.activations.empty()) {
    LLMPROF_LET(config.activation, known(types.activations, "--activation-dtype"));
  }
  if (!types.arithmetic.empty()) {
    Number number{"tf32", 4};
    if (types.arithmetic != number.type) {
      LLMPROF_LET(number, known(types.arithmetic, "--arithmetic"));
    }
    config.arithmetic = number.type;
    if (config.quantization) config.quantization->arithmetic = number.type;
  }
  return {};
}

}  // namespace llmprof::model
