// X from Python: products, columns and sizes of a matrix by itself.
#include "bindings/matrix.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/module.hpp"
#include "matrix/columns.hpp"
#include "matrix/statistics.hpp"

namespace marginrank {
namespace {

auto dot_at(const Matrix& X, const Array1<double>& v, std::optional<Array1<Index>> rows,
            int threads) {
  check_vector(v, X.n_columns(), "v must have one entry per column");
  if (rows) check_rows(*rows, X.n_rows());
  const Index n_documents = rows ? static_cast<Index>(rows->size()) : X.n_rows();
  const Index* row = rows ? rows->data() : nullptr;
  auto u = new_array<double>(static_cast<std::size_t>(n_documents));
  const GilReleased released;
  X.visit([&](const auto& view) {
    for_each_row_block(n_documents, threads,
                       [&](Index, Range block) { view.dots(row, block, v.data(), u.data()); });
  });
  return u;
}

auto column_at(const Matrix& X, Index j, std::optional<Array1<Index>> rows, int threads) {
  require(0 <= j && j < X.n_columns(), "the column must lie inside the matrix");
  if (rows) check_rows(*rows, X.n_rows());
  const Index n_documents = rows ? static_cast<Index>(rows->size()) : X.n_rows();
  const Index* row = rows ? rows->data() : nullptr;
  auto out = new_array<double>(static_cast<std::size_t>(n_documents));
  const GilReleased released;
  X.visit([&](const auto& view) { take_column(view, j, row, n_documents, out.data(), threads); });
  return out;
}

template <class T>
Matrix columns_of(const Dense<T>& X, const std::vector<Index>& chosen, int threads) {
  const auto rows = static_cast<std::size_t>(X.n_rows());
  auto table = new_array<T>(rows * chosen.size());
  {
    const GilReleased released;
    take_columns(X, chosen, table.data(), threads);
  }
  const Result2<T> shaped(table.data(), {rows, chosen.size()}, nb::cast(table));
  return Matrix::dense(nb::cast<Strided2<T>>(nb::cast(shaped)));
}

template <class T, class I, class View>
Matrix sparse_columns_of(const View& X, const std::vector<Index>& chosen) {
  CsrArrays<T, I> part;
  {
    const GilReleased released;
    part = take_sparse_columns<T, I>(X, chosen);
  }
  auto data = to_array(std::move(part.data));
  auto indices = to_array(std::move(part.indices)), indptr = to_array(std::move(part.indptr));
  return Matrix::csr(nb::cast<Array1<T>>(nb::cast(data)), nb::cast<Array1<I>>(nb::cast(indices)),
                     nb::cast<Array1<I>>(nb::cast(indptr)), static_cast<Index>(chosen.size()));
}

template <class T, class I>
Matrix columns_of(const Csr<T, I>& X, const std::vector<Index>& chosen, int) {
  return sparse_columns_of<T, I>(X, chosen);
}

Matrix columns_of(const Hats& X, const std::vector<Index>& chosen, int) {
  return sparse_columns_of<Hats::Value, Index>(X, chosen);
}

// Some inner columns, with the categories whose columns are chosen.
Matrix columns_of(const Coded& X, const std::vector<Index>& chosen, int threads) {
  const auto split = std::lower_bound(chosen.begin(), chosen.end(), X.n_inner());
  const Matrix inner = std::visit(
      [&](const auto& view) { return columns_of(view, {chosen.begin(), split}, threads); },
      X.inner());
  const auto width = static_cast<std::uint16_t>(chosen.end() - split);
  std::vector<std::uint16_t> place(static_cast<std::size_t>(kMostCategories) + 1, width);
  for (auto j = split; j != chosen.end(); ++j) {
    place[*j - X.n_inner()] = static_cast<std::uint16_t>(j - split);
  }
  auto codes = new_array<std::uint16_t>(static_cast<std::size_t>(X.n_rows()));
  for (Index i = 0; i < X.n_rows(); ++i) codes.data()[i] = place[X.codes()[i]];
  return Matrix::coded(inner, nb::cast<Array1<std::uint16_t>>(nb::cast(codes)), width);
}

// A matrix of some columns, with memory of its own.
Matrix take_columns_of(const Matrix& X, const Array1<Index>& columns, int threads) {
  const std::vector<Index> chosen(columns.data(), columns.data() + columns.size());
  for (std::size_t c = 0; c < chosen.size(); ++c) {
    require(chosen[c] >= 0 && chosen[c] < X.n_columns() && (c == 0 || chosen[c - 1] < chosen[c]),
            "columns must lie inside the matrix and increase strictly");
  }
  return X.visit([&](const auto& view) { return columns_of(view, chosen, threads); });
}

double sum_of(const Matrix& X, int threads) {
  const GilReleased released;
  return X.visit([&](const auto& view) { return sum(view, threads); });
}

auto magnitudes_of(const Matrix& X, int threads) {
  if (!X.magnitudes) {
    std::vector<double> found;
    {
      const GilReleased released;
      found = X.visit([&](const auto& view) { return magnitudes(view, threads); });
    }
    X.magnitudes = std::move(found);
  }
  return to_array(std::vector<double>(*X.magnitudes));
}

template <class T>
void bind_layouts(nb::class_<Matrix>& matrix) {
  matrix.def_static("dense", &Matrix::dense<T>, "x"_a.noconvert());
  matrix.def_static("csr", &Matrix::csr<T, std::int32_t>, "data"_a.noconvert(),
                    "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a);
  matrix.def_static("csr", &Matrix::csr<T, std::int64_t>, "data"_a.noconvert(),
                    "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a);
}

}  // namespace

void bind_matrix(nb::module_& m) {
  nb::class_<Matrix> matrix(m, "Matrix", "A view of X; never copies it.");
  bind_layouts<float>(matrix);
  bind_layouts<double>(matrix);
  matrix.def_static("hats", &Matrix::hats, "codes"_a, "steps"_a, "starts"_a,
                    "Hat functions: a left column and a step towards the next for each value.");
  matrix.def("coded", &Matrix::coded, "codes"_a, "width"_a,
             "X with one more column per category: 1 in the rows of its code, 0 elsewhere.");
  matrix.def_prop_ro("n_rows", &Matrix::n_rows);
  matrix.def_prop_ro("n_columns", &Matrix::n_columns);
  matrix.def_prop_ro("n_entries", &Matrix::n_entries);
  matrix.def("dot", &dot_at, "v"_a, "rows"_a = nb::none(), "threads"_a = 1,
             "X v, for all rows or those given.");
  matrix.def("column", &column_at, "j"_a, "rows"_a = nb::none(), "threads"_a = 1,
             "Column j, for all rows or those given.");
  matrix.def("take_columns", &take_columns_of, "columns"_a, "threads"_a = 1,
             "A copy of some columns, ascending.");
  matrix.def("magnitudes", &magnitudes_of, "threads"_a = 1,
             "Largest |x| of each column, NaN or infinite if an entry is; a sweep the first time.");
  matrix.def("sum", &sum_of, "threads"_a = 1, "Sum of all entries: one plain sweep over X.");
}

}  // namespace marginrank
