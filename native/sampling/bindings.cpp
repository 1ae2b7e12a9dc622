#include "sampling/bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string_view>

#include "isa/select.hpp"
#include "model/decoder.hpp"
#include "sampling/row_sampler.hpp"
#include "sampling/row_search.hpp"
#include "support/check.hpp"
#include "support/exclusive.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace paceline {
namespace {

template <class T>
using Given = std::optional<nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

// A contiguous float32 array of one or two dimensions, borrowed through the buffer protocol: an exchange of tensors
// refuses a read-only array first and takes twice as long.
class FloatRows {
 public:
  explicit FloatRows(nb::handle source) {
    if (PyObject_GetBuffer(source.ptr(), &view_, PyBUF_ND | PyBUF_FORMAT) != 0) throw nb::python_error();
  }
  ~FloatRows() { PyBuffer_Release(&view_); }
  FloatRows(const FloatRows&) = delete;
  FloatRows& operator=(const FloatRows&) = delete;

  bool is_float() const { return std::string_view(view_.format) == "f"; }
  int num_dimensions() const { return view_.ndim; }
  const float* data() const { return static_cast<const float*>(view_.buf); }
  std::size_t num_rows() const { return view_.ndim == 1 ? 1 : static_cast<std::size_t>(view_.shape[0]); }
  std::size_t width() const { return static_cast<std::size_t>(view_.shape[view_.ndim - 1]); }

 private:
  Py_buffer view_;
};

std::ptrdiff_t search(nb::handle source, std::size_t count) {
  const FloatRows row(source);
  require(row.is_float() && row.num_dimensions() == 1 && count >= 1 && count <= row.width(),
          "expected a row of at least 1 and `count` float32 numbers");
  return search_row(row.data(), count);
}

template <class T>
std::vector<T> copied(const Given<T>& given) {
  return given ? std::vector<T>(given->data(), given->data() + given->size()) : std::vector<T>();
}

void make_draw(Draw* self, double temperature, double log_min_p, std::int64_t top_k, double top_p, std::uint64_t seed,
               std::uint64_t position, std::uint32_t stream, const Given<std::int32_t>& ids, const Given<float>& values,
               const Given<std::uint32_t>& mask) {
  new (self)
      Draw{temperature, log_min_p, top_k, top_p, seed, position, stream, copied(ids), copied(values), copied(mask)};
}

// Row samplers, one for each thread that rows may be dealt out to.
class Sampler {
 public:
  Sampler(int vocab_size, const std::string& isa, int num_threads) : vocab_size_(vocab_size) {
    require(num_threads >= 1, "a sampler needs a thread");
    for (int i = 0; i < num_threads; ++i) {
      samplers_.push_back(std::make_unique<RowSampler>(vocab_size, find_kernels(isa)));
    }
  }

  // Draw i is from row rows[i]. On the decoder's threads, where one is given and there are several rows.
  std::vector<int> sample_rows(nb::handle source, const std::vector<std::size_t>& rows,
                               const std::vector<const Draw*>& draws, Decoder* decoder) {
    const Exclusive exclusive(is_in_use_);
    const FloatRows logits(source);
    check(logits, rows, draws);
    const nb::gil_scoped_release release;
    std::vector<int> tokens(rows.size());
    const auto sample = [&](RowSampler& sampler, std::size_t i) {
      tokens[i] = sampler.sample(logits.data() + rows[i] * logits.width(), *draws[i]);
    };
    if (decoder == nullptr || rows.size() == 1 || samplers_.size() == 1) {
      for (std::size_t i = 0; i < rows.size(); ++i) sample(*samplers_[0], i);
      return tokens;
    }
    std::atomic<std::size_t> next{0};
    decoder->for_each(static_cast<int>(samplers_.size()), [&](int tile) {
      for (std::size_t i = next++; i < rows.size(); i = next++) sample(*samplers_[tile], i);
    });
    return tokens;
  }

 private:
  void check(const FloatRows& logits, const std::vector<std::size_t>& rows,
             const std::vector<const Draw*>& draws) const {
    const int dimensions = logits.num_dimensions();
    require(logits.is_float() && (dimensions == 1 || dimensions == 2) &&
                logits.width() >= static_cast<std::size_t>(vocab_size_),
            "expected rows of at least " + std::to_string(vocab_size_) + " float32 logits");
    require(rows.size() == draws.size(), "each row needs one draw");
    for (const std::size_t row : rows) require(row < logits.num_rows(), "a row is not there");
    for (const Draw* draw : draws) samplers_[0]->check(*draw);
  }

  const int vocab_size_;
  std::vector<std::unique_ptr<RowSampler>> samplers_;
  std::atomic<bool> is_in_use_{false};
};

}  // namespace

void bind_sampling(nb::module_& m) {
  m.def("search_row", search, "row"_a, "count"_a,
        "The lowest index of the highest of the first `count` numbers; -1 where one of them is NaN or an infinity.");
  nb::class_<Draw>(m, "Draw").def("__init__", make_draw, "temperature"_a, "log_min_p"_a, "top_k"_a, "top_p"_a, "seed"_a,
                                  "position"_a, "stream"_a, "ids"_a = nb::none(), "values"_a = nb::none(),
                                  "mask"_a = nb::none());
  nb::class_<Sampler>(m, "Sampler")
      .def(nb::init<int, const std::string&, int>(), "vocab_size"_a, "isa"_a, "num_threads"_a)
      .def("sample_rows", &Sampler::sample_rows, "logits"_a, "rows"_a, "draws"_a, "decoder"_a = nb::none());
  m.attr("NOT_FINITE") = kNotFinite;
  m.attr("NOTHING_ALLOWED") = kNothingAllowed;
}

}  // namespace paceline
