// Products with the K types for x86-64 processors with AVX-512 VNNI.
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__) || defined(PACELINE_SIMDE)
#include "isa/avx512.hpp"
#include "isa/products.hpp"

namespace paceline::avx512 {

void multiply_records(const Product& p, const Blocks& blocks);

void multiply_records(const Product& p, const Blocks& blocks) { kernels::multiply_records<Products>(p, blocks); }

}  // namespace paceline::avx512

#endif
