// The kernels for aarch64 processors with the dot product of ARMv8.2.
#include "isa/table.hpp"

#if defined(__ARM_FEATURE_DOTPROD) && defined(__aarch64__)
#include "isa/neon.hpp"
#include "isa/products.hpp"

namespace paceline {
namespace neon {

void multiply_records(const Product& p, const Blocks& blocks);  // in a unit of its own

namespace {

const Kernels kTable = kernels::make_table<Isa, Products>("neon", kernels::multiply<Products, multiply_records>);

}  // namespace
}  // namespace neon

const Kernels* const kNeonKernels = &neon::kTable;

}  // namespace paceline

#else

namespace paceline {
const Kernels* const kNeonKernels = nullptr;
}  // namespace paceline

#endif
