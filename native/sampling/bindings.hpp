// What Python sees of sampling.
#pragma once

#include <nanobind/nanobind.h>

namespace paceline {

void bind_sampling(nanobind::module_& m);

}  // namespace paceline
