// Products with the K types for aarch64 processors with the dot product of ARMv8.2.
#if defined(__ARM_FEATURE_DOTPROD) && defined(__aarch64__)
#include "isa/neon.hpp"
#include "isa/products.hpp"

namespace paceline::neon {

void multiply_records(const Product& p, const Blocks& blocks);

void multiply_records(const Product& p, const Blocks& blocks) { kernels::multiply_records<Products>(p, blocks); }

}  // namespace paceline::neon

#endif
