// Products of every type, for every number of rows of a pass and more, with full and partly filled blocks.
#include "support/aligned.hpp"
#include "tests/recorder.hpp"

namespace paceline {
namespace {

struct Shape {
  int num_outputs;
  int num_units;  // of the type's columns, or of 32
};

constexpr WeightType kTypes[] = {WeightType::kF32,  WeightType::kF16,  WeightType::kBF16,   WeightType::kQ4_0,
                                 WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1,   WeightType::kQ8_0,
                                 WeightType::kQ2_K, WeightType::kQ3_K, WeightType::kQ4_K,   WeightType::kQ5_K,
                                 WeightType::kQ6_K, WeightType::kQ8_K, WeightType::kIQ4_NL, WeightType::kIQ4_XS,
                                 WeightType::kMXFP4};
constexpr Shape kShapes[] = {{13, 1}, {75, 3}};

// Of magnitude 2^-10 to 2^-3; one in 32 is subnormal.
std::uint16_t random_half(Random& random) {
  const int exponent = random.below(32) == 0 ? 0 : 5 + random.below(8);
  return static_cast<std::uint16_t>((random.bits() & 0x83ffu) | static_cast<unsigned>(exponent) << 10);
}

void fill_scale(Random& random, int bytes, std::uint8_t* out) {
  if (bytes == 1) {
    *out = static_cast<std::uint8_t>(random.below(16) == 0 ? random.below(3) : 118 + random.below(12));
  } else if (bytes == 2) {
    const std::uint16_t half = random_half(random);
    std::memcpy(out, &half, 2);
  } else {
    const float x = random.uniform() * 0.1f;
    std::memcpy(out, &x, 4);
  }
}

// One record: codes and scales within it may be any bytes, but for the 6-bit scales that have minima.
void fill_record(Random& random, const Format& f, std::uint8_t* record) {
  for (int i = 0; i < record_bytes(f); ++i) record[i] = static_cast<std::uint8_t>(random.bits() >> 13);
  if (f.has_minima) {
    for (int i = fine_scale_offset(f); i < record_code_offset(f); ++i) record[i] &= 63;
  }
  const int num_scales = kBlockRows * (f.has_minimum ? 2 : 1);
  for (int i = 0; i < num_scales; ++i) fill_scale(random, f.scale_bytes, record + i * f.scale_bytes);
}

void fill_floats(Random& random, WeightType type, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) {
    if (type == WeightType::kF16) {
      fill_scale(random, 2, out + 2 * i);
    } else {
      const float x = random.uniform() * 0.1f;
      const int bytes = format_of(type).file_bytes;
      std::memcpy(out + bytes * i, reinterpret_cast<const std::uint8_t*>(&x) + 4 - bytes, bytes);
    }
  }
}

struct Weights {
  MatrixView view;
  AlignedBuffer<std::uint8_t> data;

  Weights(WeightType type, const Shape& shape) {
    const Format f = format_of(type);
    Random random(static_cast<std::uint64_t>(type) * 100 + shape.num_outputs);
    view.type = type;
    view.columns = shape.num_units * (f.columns > 1 ? f.columns : kGroup);
    view.num_blocks = (shape.num_outputs + kBlockRows - 1) / kBlockRows;
    const int unit_bytes = f.columns > 1 ? record_bytes(f) : kBlockRows * f.file_bytes;
    const int units = view.columns / f.columns;
    view.block_bytes = (static_cast<std::size_t>(units) * unit_bytes + 63) / 64 * 64;
    data = AlignedBuffer<std::uint8_t>(view.block_bytes * view.num_blocks);
    view.data = data.data();
    for (int block = 0; block < view.num_blocks; ++block) {
      std::uint8_t* at = data.data() + block * view.block_bytes;
      if (f.columns == 1) {
        fill_floats(random, type, units * kBlockRows, at);
      } else {
        for (int i = 0; i < units; ++i) fill_record(random, f, at + i * unit_bytes);
      }
    }
  }
};

void run_product(const Kernels& kernels, const Weights& weights, const Shape& shape, int num_rows, Recorder& out) {
  const int columns = weights.view.columns;
  const std::size_t num_groups =
      static_cast<std::size_t>((num_rows + kMaxRows - 1) / kMaxRows * kMaxRows) * (columns / kGroup);
  Random random(columns);
  std::vector<float> values = random.floats(static_cast<std::size_t>(num_rows) * columns);
  std::vector<QuantizedGroup> quantized(num_groups);
  std::vector<SplitGroup> split(num_groups);
  const Activations inputs{columns, values.data(), quantized.data(), split.data()};
  for (int row = 0; row < num_rows; ++row) kernels.quantize(inputs, row, 0, columns);
  std::vector<float> results(static_cast<std::size_t>(num_rows) * shape.num_outputs);
  const Product product{weights.view,      inputs,         num_rows,
                        shape.num_outputs, results.data(), static_cast<std::size_t>(shape.num_outputs)};
  kernels.multiply(product, {0, weights.view.num_blocks, 0, 1});
  out.begin("type " + std::to_string(static_cast<int>(weights.view.type)) + ", " + std::to_string(num_rows) +
            " rows, " + std::to_string(shape.num_outputs) + " outputs, " + std::to_string(columns) + " columns");
  out.add_all(results);
}

}  // namespace

void run_products(const Kernels& kernels, Recorder& out) {
  for (const WeightType type : kTypes) {
    for (const Shape& shape : kShapes) {
      const Weights weights(type, shape);
      for (int rows = 1; rows <= kMaxRows + 1; ++rows) run_product(kernels, weights, shape, rows, out);
      run_product(kernels, weights, shape, 33, out);
    }
  }
}

}  // namespace paceline
