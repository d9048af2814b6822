// Grids over two features, from Python.
#include "matrix/grids.hpp"

#include "bindings/matrix.hpp"
#include "bindings/module.hpp"

namespace marginrank {
namespace {

template <class T>
auto scores_of(const Strided2<T>& x, const Array1<double>& at, const Array1<Index>& starts,
               const Array1<std::uint8_t>& categorical, const Array1<Index>& features,
               const Array1<double>& values, int threads) {
  const Dense<T> X = dense_view(x);
  const auto n_axes = static_cast<Index>(features.size());
  check_starts(starts, n_axes);
  require(n_axes % 2 == 0, "a grid must have two axes");
  require(static_cast<Index>(categorical.size()) == n_axes,
          "categorical must have one entry per axis");
  check_vector(at, starts(starts.size() - 1), "knots must have one entry per column");
  const Grids grids{
      {at.data(), starts.data(), categorical.data(), n_axes}, features.data(), values.data()};
  Index n_nodes = 0;
  for (Index a = 0; a < n_axes; a += 2) n_nodes += grids.length(a) * grids.length(a + 1);
  check_vector(values, n_nodes, "values must have one entry per node");
  for (Index a = 0; a < n_axes; ++a) {
    require(0 <= features(a) && features(a) < X.n_columns(), "features must be columns of x");
  }
  auto scores = new_array<double>(x.shape(0));
  const GilReleased released;
  grid_scores(X, grids, scores.data(), threads);
  return scores;
}

auto sums_of(const Array2<std::uint8_t>& codes, const Array1<double>& z, Index width, int threads) {
  const auto n_features = static_cast<Index>(codes.shape(0));
  const auto n_documents = static_cast<Index>(codes.shape(1));
  check_vector(z, n_documents, "z must have one entry per document");
  require(std::all_of(codes.data(), codes.data() + codes.size(),
                      [&](std::uint8_t code) { return code < width; }),
          "codes must be less than the width");
  auto sums = new_matrix<double>(n_features * (n_features - 1) / 2, width * width);
  const GilReleased released;
  cell_sums(codes.data(), z.data(), n_features, n_documents, width, sums.data(), threads);
  return sums;
}

template <class T>
void bind_scores(nb::module_& m) {
  m.def("grid_scores", &scores_of<T>, "x"_a.noconvert(), "knots"_a, "starts"_a, "categorical"_a,
        "features"_a, "values"_a, "threads"_a, "By row, the sum of grids given at their nodes.");
}

}  // namespace

void bind_grids(nb::module_& m) {
  bind_scores<float>(m);
  bind_scores<double>(m);
  m.def("cell_sums", &sums_of, "codes"_a, "z"_a, "width"_a, "threads"_a,
        "For each two rows of codes, the sums of z by both.");
}

}  // namespace marginrank
