// Orders inside queries from Python: labels to levels, scores to ranks.
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>

#include "bindings/checks.hpp"
#include "bindings/module.hpp"
#include "ranking/levels.hpp"
#include "ranking/order.hpp"

namespace marginrank {
namespace {

auto ranked_documents(const Array1<double>& scores, const Array1<Index>& offsets, int threads) {
  check_offsets(offsets, scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    require(std::isfinite(scores(i)), "scores must be finite");
  }
  auto order = new_array<Index>(scores.size());
  const GilReleased released;
  rank_documents(scores.data(), offsets.data(), static_cast<Index>(offsets.size()) - 1,
                 order.data(), threads);
  return order;
}

auto ranked_labels(const Array1<double>& y, const Array1<Index>& offsets, int threads) {
  check_offsets(offsets, y.size());
  Levels levels;
  {
    const GilReleased released;
    levels = rank_labels(y.data(), offsets.data(), static_cast<Index>(offsets.size()) - 1, threads);
  }
  return std::make_tuple(to_array(std::move(levels.level)), to_array(std::move(levels.n_levels)),
                         to_array(std::move(levels.n_pairs)),
                         to_array(std::move(levels.n_adjacent_pairs)));
}

}  // namespace

void bind_ranking(nb::module_& m) {
  m.def("rank_labels", &ranked_labels, "y"_a, "offsets"_a, "threads"_a,
        "Level of each document; by query: levels, pairs, pairs of adjacent levels.");
  m.def("rank_documents", &ranked_documents, "scores"_a, "offsets"_a, "threads"_a,
        "Documents of each query by descending score, ties in document order.");
}

}  // namespace marginrank
