// The kernels for x86-64 processors with AVX-VNNI, the 256-bit form of VNNI.
#include "isa/table.hpp"

#if defined(__AVXVNNI__) || defined(PACELINE_SIMDE)
#include "isa/avxvnni.hpp"
#include "isa/products.hpp"

namespace paceline {
namespace avxvnni {

void multiply_records(const Product& p, int first, int last);  // in a unit of its own

namespace {

void multiply(const Product& p, int first, int last) {
  if (record_groups(p.weights.type) > 1) return multiply_records(p, first, last);
  kernels::multiply_groups<Products>(p, first, last);
}

const Kernels kTable = kernels::make_table<avx2::Isa>("avxvnni", multiply);

}  // namespace
}  // namespace avxvnni

const Kernels* const kAvxVnniKernels = &avxvnni::kTable;

}  // namespace paceline

#else

namespace paceline {
const Kernels* const kAvxVnniKernels = nullptr;
}  // namespace paceline

#endif
