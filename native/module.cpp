// Python bindings: plain lists and arrays in, views of the decoder's buffers out.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "isa/select.hpp"
#include "model/decoder.hpp"
#include "sampling/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline {
namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Logits = nb::ndarray<nb::numpy, const float, nb::ndim<2>>;
using Hidden = nb::ndarray<nb::numpy, const float, nb::ndim<3>>;

void load_matrix(Decoder& decoder, const std::string& role, int layer, int type, int rows, int columns,
                 const Bytes& data) {
  decoder.load_matrix(role, layer, static_cast<WeightType>(type), rows, columns, data.data(), data.size());
}

void load_vector(Decoder& decoder, const std::string& role, int layer, const Floats& data) {
  decoder.load_vector(role, layer, data.data(), data.size());
}

// The view keeps the decoder alive; its content is overwritten by the next forward.
Logits logits(nb::handle self) {
  const auto& decoder = nb::cast<const Decoder&>(self);
  return Logits(
      decoder.logits(),
      {static_cast<std::size_t>(decoder.num_logits_rows()), static_cast<std::size_t>(decoder.padded_vocab_size())},
      self);
}

// The view owns the memory that it shows.
Hidden hidden(const Decoder& decoder, std::size_t num_layers) {
  auto* shared = new std::shared_ptr<AlignedBuffer<float>>(decoder.hidden());
  const nb::capsule owner(shared,
                          [](void* p) noexcept { delete static_cast<std::shared_ptr<AlignedBuffer<float>>*>(p); });
  return Hidden((*shared)->data(),
                {static_cast<std::size_t>(decoder.num_hidden_rows()), num_layers,
                 static_cast<std::size_t>(decoder.config().hidden_size)},
                owner);
}

void bind_config(nb::module_& m) {
  nb::class_<DecoderConfig>(m, "DecoderConfig")
      .def(nb::init<>())
      .def_rw("num_layers", &DecoderConfig::num_layers)
      .def_rw("hidden_size", &DecoderConfig::hidden_size)
      .def_rw("intermediate_size", &DecoderConfig::intermediate_size)
      .def_rw("num_heads", &DecoderConfig::num_heads)
      .def_rw("num_kv_heads", &DecoderConfig::num_kv_heads)
      .def_rw("head_dim", &DecoderConfig::head_dim)
      .def_rw("vocab_size", &DecoderConfig::vocab_size)
      .def_rw("rope_dim", &DecoderConfig::rope_dim)
      .def_rw("is_rope_split", &DecoderConfig::is_rope_split)
      .def_rw("rope_frequencies", &DecoderConfig::rope_frequencies)
      .def_rw("rope_magnitudes", &DecoderConfig::rope_magnitudes)
      .def_rw("layer_ropes", &DecoderConfig::layer_ropes)
      .def_rw("layer_windows", &DecoderConfig::layer_windows)
      .def_rw("attention_scale", &DecoderConfig::attention_scale)
      .def_rw("embedding_scale", &DecoderConfig::embedding_scale)
      .def_rw("is_gelu", &DecoderConfig::is_gelu)
      .def_rw("has_qkv_bias", &DecoderConfig::has_qkv_bias)
      .def_rw("has_qk_norm", &DecoderConfig::has_qk_norm)
      .def_rw("has_post_norms", &DecoderConfig::has_post_norms)
      .def_rw("rms_norm_eps", &DecoderConfig::rms_norm_eps)
      .def_rw("max_length", &DecoderConfig::max_length)
      .def_rw("max_rows", &DecoderConfig::max_rows)
      .def_rw("max_logits_rows", &DecoderConfig::max_logits_rows)
      .def_rw("num_pages", &DecoderConfig::num_pages)
      .def_rw("num_threads", &DecoderConfig::num_threads)
      .def_rw("isa", &DecoderConfig::isa);
}

void bind_segment(nb::module_& m) {
  nb::class_<Segment>(m, "Segment")
      .def(
          "__init__",
          [](Segment* self, int length, std::vector<std::int32_t> pages, std::vector<std::int32_t> tokens,
             std::vector<std::int32_t> parents, std::vector<std::int32_t> logits_rows, bool wants_hidden,
             bool is_write_suppressed) {
            new (self)
                Segment{length,       std::move(pages),   std::move(tokens), std::move(parents), std::move(logits_rows),
                        wants_hidden, is_write_suppressed};
          },
          "length"_a, "pages"_a, "tokens"_a, "parents"_a, "logits_rows"_a, "wants_hidden"_a, "is_write_suppressed"_a);
}

void bind_trace(nb::module_& m) {
  nb::class_<ForwardTrace>(m, "ForwardTrace")
      .def_ro("num_forwards", &ForwardTrace::num_forwards)
      .def_ro("forward_ns", &ForwardTrace::forward_ns)
      .def_ro("work", &ForwardTrace::work)
      .def_ro("wait", &ForwardTrace::wait);
}

void bind_decoder(nb::module_& m) {
  nb::class_<Decoder>(m, "Decoder")
      .def(nb::init<const DecoderConfig&>(), "config"_a)
      .def("load_matrix", load_matrix, "role"_a, "layer"_a, "type"_a, "rows"_a, "columns"_a, "data"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("load_vector", load_vector, "role"_a, "layer"_a, "data"_a)
      .def("check_complete", &Decoder::check_complete)
      .def("forward", &Decoder::forward, "segments"_a, "hidden_layers"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("logits", logits)
      .def("hidden", hidden, "num_layers"_a)
      .def("copy_slots", &Decoder::copy_slots, "pages"_a, "moves"_a)
      .def("copy_page", &Decoder::copy_page, "source"_a, "destination"_a)
      .def("fill_pages", &Decoder::fill_pages, "pages"_a)
      .def("poison_pages", &Decoder::poison_pages, "pages"_a)
      .def("read_bandwidth", &Decoder::read_bandwidth, "bytes"_a, "repeats"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("code_rate", &Decoder::code_rate, "repeats"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("float_rate", &Decoder::float_rate, "repeats"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("start_trace", &Decoder::start_trace)
      .def("stop_trace", &Decoder::stop_trace)
      .def("trace", &Decoder::trace)
      .def_prop_ro("padded_vocab_size", &Decoder::padded_vocab_size)
      .def_prop_ro("isa", &Decoder::isa)
      .def_prop_ro("weight_bytes", &Decoder::weight_bytes)
      .def_prop_ro("store_bytes", &Decoder::store_bytes);
}

}  // namespace
}  // namespace paceline

NB_MODULE(_native, m) {
  m.doc() = "The compiled core: packed weights, small-batch kernels, paged attention and the decoder forward.";
  paceline::bind_config(m);
  paceline::bind_segment(m);
  paceline::bind_trace(m);
  paceline::bind_decoder(m);
  paceline::bind_sampling(m);
  m.def("runnable_isas", paceline::runnable_isas, "Names of the kernels that this build has and this processor runs.");
  m.attr("PAGE_SIZE") = paceline::kPageSize;
  m.attr("PHASE_KINDS") = std::vector<std::string>(paceline::phase::kNames.begin(), paceline::phase::kNames.end());
}
