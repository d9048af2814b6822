// Sweeps over X that several problems on the same documents share, from Python.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "bindings/evaluation.hpp"
#include "bindings/module.hpp"
#include "sweeps/objective.hpp"
#include "sweeps/shared_sweeper.hpp"

namespace marginrank {
namespace {

using Vectors = std::vector<Array1<double>>;

void check_problems(const Matrix& X, const std::vector<const Pairs*>& pairs) {
  require(!pairs.empty(), "a shared sweep needs at least one problem");
  pairs[0]->check_matrix(X);
  for (const Pairs* other : pairs) {
    require(pairs[0]->same_documents(*other),
            "problems that share a sweep must have the same documents in the same queries; sweep "
            "for each of them alone");
  }
}

void check_vectors(const Vectors& vectors, std::size_t count, Index n, const char* message) {
  require(vectors.size() == count, message);
  for (const Array1<double>& v : vectors) check_vector(v, n, message);
}

std::vector<const double*> inputs(const Vectors& vectors) {
  std::vector<const double*> pointers;
  for (const Array1<double>& v : vectors) pointers.push_back(v.data());
  return pointers;
}

// Arrays for results, and where they are.
class Results {
 public:
  void add(const Result1<double>& array) {
    arrays_.push_back(array);
    pointers_.push_back(array.data());
  }
  const std::vector<Result1<double>>& arrays() const { return arrays_; }
  const std::vector<double*>& pointers() const { return pointers_; }

 private:
  std::vector<Result1<double>> arrays_;
  std::vector<double*> pointers_;
};

void sweep(const Matrix& X, const Pairs& pairs, const std::vector<SharedProblem>& problems,
           int threads) {
  const GilReleased released;
  X.visit(
      [&](const auto& view) { SharedSweeper(view, pairs.documents(), threads).sweep(problems); });
}

// The result of evaluate for each problem
auto evaluate_together(const Matrix& X, const std::vector<nb::object>& owners, const Vectors& w,
                       const std::vector<nb::object>& likes, int threads) {
  std::vector<const Pairs*> pairs;
  for (const nb::object& owner : owners) pairs.push_back(&nb::cast<const Pairs&>(owner));
  check_problems(X, pairs);
  check_vectors(w, pairs.size(), X.n_columns(), "each problem needs a w with one entry per column");
  require(likes.size() == pairs.size(), "each problem needs a point to be like, or None");
  std::vector<Evaluation> results;
  for (const nb::object& owner : owners) results.emplace_back(owner, X);
  std::vector<SharedProblem> problems;
  for (std::size_t k = 0; k < results.size(); ++k) {
    Evaluation& result = results[k];
    const Point* like = likes[k].is_none() ? nullptr : &nb::cast<const Point&>(likes[k]);
    problems.push_back(result.point.visit([&](const auto& kernel, auto& state) {
      return shared_evaluation(kernel, result.vectors(w[k]), result.target(kernel, state, like));
    }));
  }
  sweep(X, *pairs[0], problems, threads);
  nb::list found;
  for (Evaluation& result : results) found.append(nb::cast(std::move(result).tuple()));
  return found;
}

// (H v, X v) for each of the points
auto hess_vec_together(const Matrix& X, const std::vector<const Point*>& points, const Vectors& v,
                       int threads) {
  std::vector<const Pairs*> pairs;
  for (const Point* point : points) pairs.push_back(&point->pairs());
  check_problems(X, pairs);
  check_vectors(v, pairs.size(), X.n_columns(), "each point needs a v with one entry per column");
  std::vector<std::tuple<Result1<double>, Result1<double>>> found;
  std::vector<SharedProblem> problems;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto& [out, u] =
        found.emplace_back(new_array<double>(v[k].size()), points[k]->pairs().new_scores());
    const SweepVectors vectors{span_of(v[k]), span_of(u), span_of(out)};
    problems.push_back(points[k]->visit([&](const auto& kernel, const auto& state) {
      return shared_product(kernel, state, vectors);
    }));
  }
  sweep(X, *pairs[0], problems, threads);
  return found;
}

auto dot_together(const Matrix& X, const std::vector<Pairs*>& pairs, const Vectors& v,
                  int threads) {
  check_problems(X, {pairs.begin(), pairs.end()});
  check_vectors(v, pairs.size(), X.n_columns(), "each problem needs a v with one entry per column");
  Results u;
  for (Pairs* problem : pairs) u.add(problem->new_scores());
  {
    const GilReleased released;
    X.visit([&](const auto& view) {
      SharedSweeper(view, pairs[0]->documents(), threads).dots(inputs(v), u.pointers());
    });
  }
  return u.arrays();
}

auto transpose_dot_together(const Matrix& X, const std::vector<const Pairs*>& pairs,
                            const Vectors& z, int threads) {
  check_problems(X, pairs);
  check_vectors(z, pairs.size(), static_cast<Index>(pairs[0]->n_documents()),
                "each problem needs a z with one entry per document");
  Results out;
  for (std::size_t k = 0; k < z.size(); ++k) {
    out.add(new_array<double>(static_cast<std::size_t>(X.n_columns())));
  }
  {
    const GilReleased released;
    X.visit([&](const auto& view) {
      SharedSweeper(view, pairs[0]->documents(), threads).transpose(inputs(z), out.pointers());
    });
  }
  return out.arrays();
}

}  // namespace

void bind_together(nb::module_& m) {
  m.def("evaluate_together", &evaluate_together, "X"_a, "pairs"_a, "w"_a, "likes"_a, "threads"_a,
        "The results of evaluate for several pairs on the same documents; one sweep over X.");
  m.def("hess_vec_together", &hess_vec_together, "X"_a, "points"_a, "v"_a, "threads"_a,
        "The results of hess_vec for several points on the same documents; one sweep over X.");
  m.def("dot_together", &dot_together, "X"_a, "pairs"_a, "v"_a, "threads"_a,
        "X v for several pairs on the same documents; one sweep over X.");
  m.def("transpose_dot_together", &transpose_dot_together, "X"_a, "pairs"_a, "z"_a, "threads"_a,
        "X' z for several pairs on the same documents; one sweep over X.");
}

}  // namespace marginrank
