// Products with the K types for x86-64 processors with AVX2, FMA and F16C.
#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "isa/avx2.hpp"
#include "isa/products.hpp"

namespace paceline::avx2 {

void multiply_records(const Product& p, const Blocks& blocks);

void multiply_records(const Product& p, const Blocks& blocks) { kernels::multiply_records<Isa>(p, blocks); }

}  // namespace paceline::avx2

#endif
