// Reading memory as fast as it goes: the floor that forwards are measured against.
#pragma once

#include "kernels/kernels.hpp"

namespace paceline::kernels {

template <class Isa, int kStreams>
inline std::uint64_t read_parallel(const std::uint8_t* data, std::size_t bytes) {
  const std::size_t stride = bytes / kStreams / 64 * 64;
  typename Isa::I8 acc[kStreams];
  for (auto& sum : acc) sum = Isa::splat(std::int32_t{0});
  for (std::size_t line = 0; line < stride; line += 64) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const std::uint8_t* at = data + stream * stride + line;
      Isa::prefetch(at + 2048);
      acc[stream] = Isa::add(acc[stream], Isa::add(Isa::load_ints(at), Isa::load_ints(at + 32)));
    }
  }
  std::uint64_t checksum = 0;
  for (auto& sum : acc) checksum += static_cast<std::uint64_t>(Isa::sum(Isa::to_float(sum)));
  return checksum;
}

template <class Isa>
std::uint64_t read_streams(const std::uint8_t* data, std::size_t bytes, int num_streams) {
  switch (num_streams) {
    case 1:
      return read_parallel<Isa, 1>(data, bytes);
    case 2:
      return read_parallel<Isa, 2>(data, bytes);
    case 4:
      return read_parallel<Isa, 4>(data, bytes);
    default:
      return read_parallel<Isa, 8>(data, bytes);
  }
}

}  // namespace paceline::kernels
