// Which of the kernel tables run here.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernels.hpp"

namespace paceline {

// The tables that this build has and this processor runs, fastest first. The portable one is always there, and last.
std::vector<const Kernels*> runnable_kernels();

// The same by their names.
std::vector<std::string> runnable_isas();

// The runnable table of that name; for "auto" the fastest. Throws where there is none.
const Kernels& find_kernels(const std::string& name);

}  // namespace paceline
