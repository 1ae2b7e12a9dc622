// The kernels for x86-64 processors with AVX-512 VNNI.
#include "isa/table.hpp"

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__) || defined(PACELINE_SIMDE)
#include "isa/avx512.hpp"
#include "isa/products.hpp"

namespace paceline {
namespace avx512 {

void multiply_records(const Product& p, const Blocks& blocks);  // in a unit of its own

namespace {

const Kernels kTable =
    kernels::make_table<avx2::Isa, Products>("avx512", kernels::multiply<Products, multiply_records>);

}  // namespace
}  // namespace avx512

const Kernels* const kAvx512Kernels = &avx512::kTable;

}  // namespace paceline

#else

namespace paceline {
const Kernels* const kAvx512Kernels = nullptr;
}  // namespace paceline

#endif
