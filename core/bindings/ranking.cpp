// Orders inside queries from Python: labels to levels, scores to ranks, metrics along lines.
#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>

#include "bindings/checks.hpp"
#include "bindings/module.hpp"
#include "ranking/best_intervals.hpp"
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

auto best_intervals(const Array1<double>& position, const Array1<double>& change,
                    const Array1<Index>& query, const Array1<double>& start,
                    const Array2<double>& query_weights, double narrowest, double rounding) {
  const auto n = static_cast<Index>(position.size());
  check_vector(change, n, "change must have one entry per position");
  require(query.size() == position.size(), "query must have one entry per position");
  check_rows(query, static_cast<Index>(start.size()));
  require(query_weights.shape(1) == start.size(), "query_weights must have one column per query");
  const std::size_t n_samples = query_weights.shape(0);
  auto middles = new_array<double>(n_samples), values = new_array<double>(n_samples);
  const GilReleased released;
  const MetricChanges along{span_of(position), span_of(change), span_of(query), span_of(start)};
  std::vector<double> buffer;
  for (std::size_t k = 0; k < n_samples; ++k) {
    const double* own = query_weights.data() + k * start.size();
    const BestInterval best = best_interval(along, own, narrowest, rounding, buffer);
    middles.data()[k] = best.middle;
    values.data()[k] = best.value;
  }
  return std::make_tuple(middles, values);
}

}  // namespace

void bind_ranking(nb::module_& m) {
  m.def("rank_labels", &ranked_labels, "y"_a, "offsets"_a, "threads"_a,
        "Level of each document; by query: levels, pairs, pairs of adjacent levels.");
  m.def("rank_documents", &ranked_documents, "scores"_a, "offsets"_a, "threads"_a,
        "Documents of each query by descending score, ties in document order.");
  m.def("best_intervals", &best_intervals, "position"_a, "change"_a, "query"_a, "start"_a,
        "query_weights"_a, "narrowest"_a, "rounding"_a,
        "For each sample of query weights, the middle of the widest interval where the sum of a "
        "piecewise constant metric over queries is maximal, and the maximum.");
}

}  // namespace marginrank
