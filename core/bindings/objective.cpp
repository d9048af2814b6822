// Value and derivatives of the loss from Python, at weights or at scores.
#include "sweeps/objective.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "bindings/evaluation.hpp"
#include "bindings/module.hpp"
#include "sweeps/query_squares.hpp"
#include "sweeps/sweeper.hpp"

namespace marginrank {
namespace {

// Zero for each query: those without documents are not visited.
auto zero_by_query(const Pairs& pairs) {
  auto values = new_array<double>(static_cast<std::size_t>(pairs.documents().n_queries));
  std::fill_n(values.data(), values.size(), 0.0);
  return values;
}

// (QueryLoss by query, score gradient, gradient, scores, point) at w
auto evaluate_at(const Matrix& X, nb::object owner, const Array1<double>& w, const Point* like,
                 int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  pairs.check_matrix(X);
  check_vector(w, X.n_columns(), "w must have one entry per column");
  Evaluation result(owner, X);
  {
    const GilReleased released;
    visit(X, result.point, [&](const auto& view, const auto& kernel, auto& state) {
      evaluate(view, kernel, result.vectors(w), result.target(kernel, state, like), threads);
    });
  }
  return std::move(result).tuple();
}

// (QueryLoss by query, score gradient, point) at given scores
auto evaluate_scores(nb::object owner, const Array1<double>& scores, const Point* like,
                     int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  check_vector(scores, static_cast<Index>(pairs.n_documents()),
               "scores must have one entry per document");
  auto z = new_array<double>(pairs.n_documents());
  QueryLosses losses(pairs);
  Point point(owner);
  {
    const GilReleased released;
    point.visit([&](const auto& kernel, auto& state) {
      const auto* guess = guess_from<std::decay_t<decltype(state)>>(like, pairs);
      const LossTarget<std::decay_t<decltype(kernel)>> to{losses.rows(), span_of(z), state, guess};
      evaluate_pairs(kernel, span_of(scores), to, threads);
    });
  }
  return std::make_tuple(losses.table(), z, std::move(point));
}

auto active_weights_at(nb::object owner, const Array1<double>& scores, int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  check_vector(scores, static_cast<Index>(pairs.n_documents()),
               "scores must have one entry per document");
  auto weights = zero_by_query(pairs);
  Point point(owner);
  const GilReleased released;
  point.visit([&](const auto& kernel, auto& state) {
    active_weights(kernel, span_of(scores), state, span_of(weights), threads);
  });
  return weights;
}

auto hess_vec_scores(const Point& point, const Array1<double>& u, int threads) {
  check_vector(u, static_cast<Index>(point.pairs().n_documents()),
               "u must have one entry per document");
  auto z = new_array<double>(u.size());
  const GilReleased released;
  point.visit([&](const auto& kernel, const auto& state) {
    hess_vec_pairs(kernel, state, span_of(u), span_of(z), threads);
  });
  return z;
}

// (H v, X v)
auto hess_vec_at(const Matrix& X, const Point& point, const Array1<double>& v, int threads) {
  point.pairs().check_matrix(X);
  check_vector(v, X.n_columns(), "v must have one entry per column");
  auto out = new_array<double>(v.size());
  auto u = new_array<double>(point.pairs().n_documents());
  {
    const GilReleased released;
    visit(X, point, [&](const auto& view, const auto& kernel, const auto& state) {
      hess_vec(view, kernel, state, {span_of(v), span_of(u), span_of(out)}, threads);
    });
  }
  return std::make_tuple(out, u);
}

auto transpose_at(const Matrix& X, const Pairs& pairs, const Array1<double>& z, int threads) {
  pairs.check_matrix(X);
  check_vector(z, static_cast<Index>(pairs.n_documents()), "z must have one entry per document");
  auto out = new_array<double>(static_cast<std::size_t>(X.n_columns()));
  const GilReleased released;
  X.visit([&](const auto& view) {
    Sweeper(view, pairs.documents(), threads).transpose(z.data(), out.data());
  });
  return out;
}

auto transpose_groups_at(const Matrix& X, const Pairs& pairs, const Array1<double>& z,
                         const Array1<Index>& bounds, int threads) {
  pairs.check_matrix(X);
  const auto l = static_cast<Index>(pairs.n_documents());
  check_vector(z, l, "z must have one entry per document");
  require(bounds.size() > 0 && bounds.data()[0] >= 0 && bounds.data()[bounds.size() - 1] <= l &&
              std::is_sorted(bounds.data(), bounds.data() + bounds.size()),
          "bounds must ascend inside the documents");
  auto out = new_matrix<double>(bounds.size() - 1, static_cast<std::size_t>(X.n_columns()));
  const GilReleased released;
  X.visit([&](const auto& view) {
    Sweeper(view, pairs.documents(), threads)
        .transpose_by_group(z.data(), bounds.data(), static_cast<Index>(bounds.size()) - 1,
                            out.data());
  });
  return out;
}

auto query_squares_at(const Matrix& X, const Pairs& pairs, const Array1<double>& size,
                      int threads) {
  pairs.check_matrix(X);
  check_vector(size, pairs.documents().n_queries, "size must have one entry per query");
  auto out = new_array<double>(static_cast<std::size_t>(X.n_columns()));
  const GilReleased released;
  X.visit([&](const auto& view) {
    add_query_squares(view, pairs.documents(), size.data(), out.data(), threads);
  });
  return out;
}

}  // namespace

void bind_objective(nb::module_& m) {
  m.def("evaluate", &evaluate_at, "X"_a, "pairs"_a, "w"_a, "like"_a.none(), "threads"_a,
        "Losses by query, score gradient, gradient, scores and point at w, in one sweep over X.");
  m.def("evaluate_scores", &evaluate_scores, "pairs"_a, "scores"_a, "like"_a.none(), "threads"_a,
        "Losses by query, score gradient and point at given scores; X is not touched.");
  m.def("active_weights", &active_weights_at, "pairs"_a, "scores"_a, "threads"_a,
        "By query, the weight of the pairs that are active for the first piece.");
  m.def("hess_vec", &hess_vec_at, "X"_a, "point"_a, "v"_a, "threads"_a,
        "Hessian-vector product and X v, in one sweep over X.");
  m.def("hess_vec_scores", &hess_vec_scores, "point"_a, "u"_a, "threads"_a,
        "Product of the Hessian in score space with u.");
  m.def("transpose_dot", &transpose_at, "X"_a, "pairs"_a, "z"_a, "threads"_a, "X' z.");
  m.def("query_squares", &query_squares_at, "X"_a, "pairs"_a, "size"_a, "threads"_a,
        "Sum over queries of (size * largest |x|)^2, by column.");
  m.def("transpose_dot_by_group", &transpose_groups_at, "X"_a, "pairs"_a, "z"_a, "bounds"_a,
        "threads"_a, "X' z of the documents between two adjacent bounds, one row per group.");
}

}  // namespace marginrank
