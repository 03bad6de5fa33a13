#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/dynlib.h"
#include "report/plot.h"

namespace llmprof::report {
namespace {

// Of librsvg 2.52 (2021) and cairo 1.10: declared here, so that no header is needed.
struct RsvgHandle;
struct CairoSurface;
struct Cairo;
struct GError {
  std::uint32_t domain;
  int code;
  char* message;
};
struct Rectangle {
  double x, y, width, height;
};
using WriteBytes = int (*)(void* closure, const unsigned char* data, unsigned length);

struct RsvgApi {
  RsvgHandle* (*open)(const unsigned char*, std::size_t, GError**) = nullptr;
  int (*size)(RsvgHandle*, double*, double*) = nullptr;
  int (*draw)(RsvgHandle*, Cairo*, const Rectangle*, GError**) = nullptr;
  void (*release)(void*) = nullptr;
  void (*free_error)(GError*) = nullptr;
  CairoSurface* (*surface)(int format, int width, int height) = nullptr;
  int (*surface_status)(CairoSurface*) = nullptr;
  int (*write_png)(CairoSurface*, WriteBytes, void*) = nullptr;
  void (*destroy_surface)(CairoSurface*) = nullptr;
  Cairo* (*context)(CairoSurface*) = nullptr;
  void (*destroy_context)(Cairo*) = nullptr;
  void (*colour)(Cairo*, double, double, double) = nullptr;
  void (*paint)(Cairo*) = nullptr;
};

// Those of cairo and GLib are found through librsvg, which needs them.
constexpr base::Binding<RsvgApi> kSymbols[] = {
    base::bind<&RsvgApi::open>("rsvg_handle_new_from_data"),
    base::bind<&RsvgApi::size>("rsvg_handle_get_intrinsic_size_in_pixels"),
    base::bind<&RsvgApi::draw>("rsvg_handle_render_document"),
    base::bind<&RsvgApi::release>("g_object_unref"),
    base::bind<&RsvgApi::free_error>("g_error_free"),
    base::bind<&RsvgApi::surface>("cairo_image_surface_create"),
    base::bind<&RsvgApi::surface_status>("cairo_surface_status"),
    base::bind<&RsvgApi::write_png>("cairo_surface_write_to_png_stream"),
    base::bind<&RsvgApi::destroy_surface>("cairo_surface_destroy"),
    base::bind<&RsvgApi::context>("cairo_create"),
    base::bind<&RsvgApi::destroy_context>("cairo_destroy"),
    base::bind<&RsvgApi::colour>("cairo_set_source_rgb"),
    base::bind<&RsvgApi::paint>("cairo_paint"),
};

constexpr int kArgb32 = 0, kSuccess = 0;
constexpr double kMostPixels = 20'000;  // of an edge: cairo's limit is 32,767

Result<RsvgApi> load() {
  const std::string names[] = {"librsvg-2.so.2"};
  Result<RsvgApi> api = base::load_api<RsvgApi>(names, kSymbols);
  if (api) return api;
  return Error{ErrorCode::kUnsupported, "no PNG without librsvg: " + api.error().message,
               "install the packages librsvg2-2 and fonts-dejavu-core, or ask for a .svg, which needs nothing"};
}

Error failed(const RsvgApi& api, std::string_view what, GError* error) {
  std::string message = fmt::format("librsvg cannot {} the picture", what);
  if (error != nullptr) {
    message += fmt::format(": {}", error->message);
    api.free_error(error);
  }
  return {ErrorCode::kInternal, message, "ask for a .svg"};
}

int append(void* closure, const unsigned char* data, unsigned length) {
  static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
  return kSuccess;
}

Result<std::string> drawn(const RsvgApi& api, RsvgHandle* picture, double scale) {
  double width = 0, height = 0;
  if (api.size(picture, &width, &height) == 0 || !(width * scale >= 1) || !(height * scale >= 1) ||
      !(std::max(width, height) * scale <= kMostPixels)) {
    return Error{ErrorCode::kInternal, fmt::format("a picture of {} x {} is not drawn", width, height), ""};
  }
  const Rectangle all{0, 0, std::ceil(width * scale), std::ceil(height * scale)};
  CairoSurface* surface = api.surface(kArgb32, static_cast<int>(all.width), static_cast<int>(all.height));
  Cairo* cairo = api.context(surface);
  api.colour(cairo, 1, 1, 1);
  api.paint(cairo);
  GError* error = nullptr;
  const bool good = api.draw(picture, cairo, &all, &error) != 0;
  api.destroy_context(cairo);
  std::string bytes;
  const bool written =
      good && api.surface_status(surface) == kSuccess && api.write_png(surface, append, &bytes) == kSuccess;
  api.destroy_surface(surface);
  if (!written) return failed(api, "draw", error);
  return bytes;
}

}  // namespace

Result<std::string> svg_to_png(const std::string& svg, double scale) {
  LLMPROF_LET(const RsvgApi api, load());
  GError* error = nullptr;
  RsvgHandle* picture = api.open(reinterpret_cast<const unsigned char*>(svg.data()), svg.size(), &error);
  if (picture == nullptr) return failed(api, "read", error);
  Result<std::string> bytes = drawn(api, picture, scale);
  api.release(picture);
  return bytes;
}

Result<std::string> plot_bytes(const Plot& plot, std::string_view file, const SvgSize& size) {
  std::string svg = plot_svg(plot, size);
  if (file.ends_with(".png")) return svg_to_png(svg);
  return svg;
}

}  // namespace llmprof::report
