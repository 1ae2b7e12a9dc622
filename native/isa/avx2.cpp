// The kernels for x86-64 processors with AVX2, FMA and F16C.
#include "isa/table.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "isa/avx2.hpp"
#include "isa/products.hpp"

namespace paceline {
namespace avx2 {

void multiply_records(const Product& p, const Blocks& blocks);  // in a unit of its own

namespace {

const Kernels kTable = kernels::make_table<Isa>("avx2", kernels::multiply<Isa, multiply_records>);

}  // namespace
}  // namespace avx2

const Kernels* const kAvx2Kernels = &avx2::kTable;

}  // namespace paceline

#else

namespace paceline {
const Kernels* const kAvx2Kernels = nullptr;
}  // namespace paceline

#endif
