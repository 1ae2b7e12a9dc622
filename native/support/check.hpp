// The boundary check: every assumption that a caller could break is stated through `require`.
#pragma once

#include <stdexcept>
#include <string>

namespace paceline {

// Throws std::invalid_argument (ValueError in Python) unless `ok`.
inline void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

}  // namespace paceline
