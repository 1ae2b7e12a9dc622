// Products with the K types for x86-64 processors with AVX-VNNI, the 256-bit form of VNNI.
#if defined(__AVXVNNI__) || defined(PACELINE_SIMDE)
#include "isa/avxvnni.hpp"
#include "isa/products.hpp"

namespace paceline::avxvnni {

void multiply_records(const Product& p, int first, int last);

void multiply_records(const Product& p, int first, int last) { kernels::multiply_records<Products>(p, first, last); }

}  // namespace paceline::avxvnni

#endif
