// Packed rows from Python.
#include "matrix/packed.hpp"

#include <nanobind/stl/array.h>

#include "bindings/checks.hpp"
#include "bindings/module.hpp"

namespace marginrank {
namespace {

template <class T>
using Output2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T>
void unpack_into(const Array2<std::uint8_t>& packed, const PackedCounts& counts,
                 const Array1<Index>& position, const Output2<T>& out, int threads) {
  const auto n_rows = static_cast<Index>(out.shape(0)),
             n_columns = static_cast<Index>(out.shape(1));
  Index n_counted = 0;
  for (const Index count : counts) {
    require(count >= 0 && count <= n_columns, "counts must be of columns");
    n_counted += count;
  }
  require(n_columns > 0 && n_counted == n_columns, "every column needs a type");
  require(static_cast<Index>(position.size()) == n_columns, "every column needs a position");
  check_rows(position, n_columns);
  require(static_cast<Index>(packed.shape(0)) == n_rows, "packed and out must have the same rows");
  require(static_cast<Index>(packed.shape(1)) == packed_row_bytes(counts),
          "packed rows must have the bytes of their columns");
  const GilReleased released;
  unpack_rows(reinterpret_cast<const std::byte*>(packed.data()), n_rows, counts, position.data(),
              n_columns, out.data(), threads);
}

}  // namespace

void bind_packed(nb::module_& m) {
  constexpr auto help = "Numbers of packed rows: counts of float64, 32, 16, uint16, uint8 columns.";
  m.def("unpack_rows", &unpack_into<float>, "packed"_a, "counts"_a, "position"_a,
        nb::arg("out").noconvert(), "threads"_a, help);
  m.def("unpack_rows", &unpack_into<double>, "packed"_a, "counts"_a, "position"_a,
        nb::arg("out").noconvert(), "threads"_a, help);
}

}  // namespace marginrank
