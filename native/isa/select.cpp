#include "isa/select.hpp"

#include "support/check.hpp"
#include "support/cpu.hpp"

namespace paceline {

std::vector<const Kernels*> runnable_kernels() {
  std::vector<const Kernels*> found;
  const auto add = [&found](const Kernels* kernels, bool can_run) {
    if (kernels != nullptr && can_run) found.push_back(kernels);
  };
  add(kAvx512Kernels, has_avx512_vnni());
  add(kAvx2Kernels, has_avx2());
  add(kNeonKernels, has_neon_dot_product());
  add(&kPortableKernels, true);
  return found;
}

std::vector<std::string> runnable_isas() {
  std::vector<std::string> names;
  for (const Kernels* kernels : runnable_kernels()) names.emplace_back(kernels->name);
  return names;
}

const Kernels& find_kernels(const std::string& name) {
  for (const Kernels* kernels : runnable_kernels()) {
    if (name == "auto" || name == kernels->name) return *kernels;
  }
  throw std::invalid_argument("there are no kernels \"" + name + "\" that run here");
}

}  // namespace paceline
