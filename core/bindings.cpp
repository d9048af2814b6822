// The Python module marginrank._core: numpy arrays in, numpy arrays out, no mathematics.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <variant>

#include "bindings_pairs.hpp"
#include "columns.hpp"
#include "coordinate_descent.hpp"
#include "diagonal.hpp"
#include "dispatch.hpp"
#include "fused.hpp"

namespace marginrank {
namespace {

Incidence make_incidence(Index n_documents, const Array2<Index>& pairs,
                         const std::optional<Array1<double>>& weight) {
  require(pairs.shape(1) == 2, "pairs must be rows of two documents");
  require(!weight || weight->size() == pairs.shape(0), "weight must have an entry a pair");
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    require(pairs.data()[k] >= 0 && pairs.data()[k] < n_documents,
            "pairs must hold numbers of documents");
  }
  const GilReleased released;
  return Incidence(n_documents, pairs.data(), static_cast<Index>(pairs.shape(0)),
                   weight ? weight->data() : nullptr);
}

// The state of a point; keeps its pairs alive and gives its memory back to them.
class Point {
 public:
  explicit Point(nb::object owner)
      : owner_(std::move(owner)), pairs_(nb::cast<Pairs*>(owner_)), state_(pairs_->new_point()) {}
  Point(Point&& from) noexcept
      : owner_(std::move(from.owner_)),
        pairs_(std::exchange(from.pairs_, nullptr)),
        state_(std::move(from.state_)) {}
  ~Point() {
    if (pairs_) pairs_->recycle(std::move(state_));
  }

  const Pairs& pairs() const { return *pairs_; }

  // f(kernel, state of this point for that kernel)
  template <class F>
  auto visit(F&& f) const {
    return std::visit(
        [&](const auto& kernel) {
          return f(kernel, *get<typename std::decay_t<decltype(kernel)>::Point>());
        },
        pairs_->kernel());
  }

  // The state, or null if it is of another kind.
  template <class T>
  T* get() const {
    const auto* state = std::get_if<std::unique_ptr<T>>(&state_);
    return state ? state->get() : nullptr;
  }

 private:
  nb::object owner_;
  Pairs* pairs_;
  Pairs::State state_;
};

// f(view of X, kernel, state) for the layout of X and the kind of pairs.
template <class F>
auto visit(const Matrix& X, const Point& point, F&& f) {
  return X.visit([&](const auto& view) {
    return point.visit([&](const auto& kernel, auto& state) { return f(view, kernel, state); });
  });
}

// Columns value, value size and slope size of a QueryLoss, zero for queries without documents.
class QueryLosses {
 public:
  explicit QueryLosses(const Pairs& pairs)
      : table_(new_matrix<double>(static_cast<std::size_t>(pairs.documents().n_queries),
                                  sizeof(QueryLoss) / sizeof(double))) {
    std::fill_n(table_.data(), table_.size(), 0.0);
  }
  QueryLoss* data() { return reinterpret_cast<QueryLoss*>(table_.data()); }
  const Result2<double>& table() const { return table_; }

 private:
  Result2<double> table_;
};

// Zero for each query: those without documents are not visited.
auto zero_by_query(const Pairs& pairs) {
  auto values = new_array<double>(static_cast<std::size_t>(pairs.documents().n_queries));
  std::fill_n(values.data(), values.size(), 0.0);
  return values;
}

// The state of a point whose order a new one may start from; null if there is none.
template <class State>
const State* guess_from(const Point* like, const Pairs& pairs) {
  const bool same = like && like->pairs().documents().offsets == pairs.documents().offsets;
  return same ? like->get<State>() : nullptr;
}

// (QueryLoss by query, score gradient, gradient, scores, point) at w
auto evaluate_at(const Matrix& X, nb::object owner, const Array1<double>& w, const Point* like,
                 int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  pairs.check_matrix(X);
  check_vector(w, X.n_columns(), "w must have an entry a column");
  const std::size_t l = pairs.n_documents();
  auto scores = new_array<double>(l), z = new_array<double>(l);
  auto gradient = new_array<double>(w.size());
  QueryLosses losses(pairs);
  Point point(owner);
  {
    const GilReleased released;
    visit(X, point, [&](const auto& view, const auto& kernel, auto& state) {
      evaluate(view, kernel, w.data(), scores.data(), losses.data(), z.data(), gradient.data(),
               state, guess_from<std::decay_t<decltype(state)>>(like, pairs), threads);
    });
  }
  return std::make_tuple(losses.table(), z, gradient, scores, std::move(point));
}

// (QueryLoss by query, score gradient, point) at given scores
auto evaluate_scores(nb::object owner, const Array1<double>& scores, const Point* like,
                     int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  check_vector(scores, static_cast<Index>(pairs.n_documents()),
               "scores must have an entry a document");
  auto z = new_array<double>(pairs.n_documents());
  QueryLosses losses(pairs);
  Point point(owner);
  {
    const GilReleased released;
    point.visit([&](const auto& kernel, auto& state) {
      evaluate_pairs(kernel, scores.data(), losses.data(), z.data(), state,
                     guess_from<std::decay_t<decltype(state)>>(like, pairs), threads);
    });
  }
  return std::make_tuple(losses.table(), z, std::move(point));
}

auto active_weights_at(nb::object owner, const Array1<double>& scores, int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  check_vector(scores, static_cast<Index>(pairs.n_documents()),
               "scores must have an entry a document");
  auto weights = zero_by_query(pairs);
  Point point(owner);
  const GilReleased released;
  point.visit([&](const auto& kernel, auto& state) {
    active_weights(kernel, scores.data(), state, weights.data(), threads);
  });
  return weights;
}

auto hess_vec_scores(const Point& point, const Array1<double>& u, int threads) {
  check_vector(u, static_cast<Index>(point.pairs().n_documents()),
               "u must have an entry a document");
  auto z = new_array<double>(u.size());
  const GilReleased released;
  point.visit([&](const auto& kernel, const auto& state) {
    hess_vec_pairs(kernel, state, u.data(), z.data(), threads);
  });
  return z;
}

// (H v, X v)
auto hess_vec_at(const Matrix& X, const Point& point, const Array1<double>& v, int threads) {
  point.pairs().check_matrix(X);
  check_vector(v, X.n_columns(), "v must have an entry a column");
  auto out = new_array<double>(v.size());
  auto u = new_array<double>(point.pairs().n_documents());
  {
    const GilReleased released;
    visit(X, point, [&](const auto& view, const auto& kernel, const auto& state) {
      hess_vec(view, kernel, state, v.data(), u.data(), out.data(), threads);
    });
  }
  return std::make_tuple(out, u);
}

auto hessian_at(const Matrix& X, const Point& point, int threads) {
  point.pairs().check_matrix(X);
  const auto n = static_cast<std::size_t>(X.n_columns());
  auto H = new_matrix<double>(n, n);
  const GilReleased released;
  visit(X, point, [&](const auto& view, const auto& kernel, const auto& state) {
    hessian(view, kernel, state, H.data(), threads);
  });
  return H;
}

auto hess_diag_at(const Matrix& X, const Point& point, int threads) {
  point.pairs().check_matrix(X);
  auto diag = new_array<double>(static_cast<std::size_t>(X.n_columns()));
  const GilReleased released;
  visit(X, point, [&](const auto& view, const auto& kernel, const auto& state) {
    hess_diag(view, kernel, state, diag.data(), threads);
  });
  return diag;
}

auto transpose_at(const Matrix& X, const Pairs& pairs, const Array1<double>& z, int threads) {
  pairs.check_matrix(X);
  check_vector(z, static_cast<Index>(pairs.n_documents()), "z must have an entry a document");
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
  check_vector(z, l, "z must have an entry a document");
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
  check_vector(size, pairs.documents().n_queries, "size must have an entry a query");
  auto out = new_array<double>(static_cast<std::size_t>(X.n_columns()));
  const GilReleased released;
  X.visit([&](const auto& view) {
    add_query_squares(view, pairs.documents(), size.data(), out.data(), threads);
  });
  return out;
}

auto dot_at(const Matrix& X, const Array1<double>& v, std::optional<Array1<Index>> rows,
            int threads) {
  check_vector(v, X.n_columns(), "v must have an entry a column");
  const Index n_documents = rows ? static_cast<Index>(rows->size()) : X.n_rows();
  const Index* row = rows ? rows->data() : nullptr;
  for (Index i = 0; row && i < n_documents; ++i) {
    require(row[i] >= 0 && row[i] < X.n_rows(), "rows must lie inside the matrix");
  }
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
  const Index n_documents = rows ? static_cast<Index>(rows->size()) : X.n_rows();
  const Index* row = rows ? rows->data() : nullptr;
  for (Index i = 0; row && i < n_documents; ++i) {
    require(row[i] >= 0 && row[i] < X.n_rows(), "rows must lie inside the matrix");
  }
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

template <class T, class I>
Matrix columns_of(const Csr<T, I>& X, const std::vector<Index>& chosen, int) {
  CsrArrays<T, I> part;
  {
    const GilReleased released;
    part = take_columns(X, chosen);
  }
  auto data = to_array(std::move(part.data));
  auto indices = to_array(std::move(part.indices)), indptr = to_array(std::move(part.indptr));
  return Matrix::csr(nb::cast<Array1<T>>(nb::cast(data)), nb::cast<Array1<I>>(nb::cast(indices)),
                     nb::cast<Array1<I>>(nb::cast(indptr)), static_cast<Index>(chosen.size()));
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

// (u, residual, passes, violation)
auto descend(const Array2<double>& H, const Array1<double>& u, const Array1<double>& residual,
             double l1, double l2, bool positive, Index max_passes, double tol) {
  const auto n = static_cast<Index>(H.shape(0));
  require(H.shape(0) == H.shape(1), "H must be square");
  check_vector(u, n, "u must have an entry a row of H");
  check_vector(residual, n, "residual must have an entry a row of H");
  auto new_u = new_array<double>(u.size()), new_residual = new_array<double>(u.size());
  std::copy_n(u.data(), u.size(), new_u.data());
  std::copy_n(residual.data(), u.size(), new_residual.data());
  DescentOutcome outcome;
  {
    const GilReleased released;
    CoordinateDescent descent(H.data(), n, {l1, l2, positive}, new_u.data(), new_residual.data());
    outcome = descent.run(max_passes, tol);
  }
  return std::make_tuple(new_u, new_residual, outcome.passes, outcome.violation);
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

template <class T>
void bind_layouts(nb::class_<Matrix>& matrix) {
  matrix.def_static("dense", &Matrix::dense<T>, "x"_a.noconvert());
  matrix.def_static("csr", &Matrix::csr<T, std::int32_t>, "data"_a.noconvert(),
                    "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a);
  matrix.def_static("csr", &Matrix::csr<T, std::int64_t>, "data"_a.noconvert(),
                    "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a);
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Native kernels of marginrank; use them through marginrank.objective.";
  nb::set_leak_warnings(false);

  nb::class_<Matrix> matrix(m, "Matrix", "A view of X; never copies it.");
  bind_layouts<float>(matrix);
  bind_layouts<double>(matrix);
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

  nb::class_<Incidence>(m, "Incidence", "A list of pairs, by document.")
      .def(nb::new_(&make_incidence), "n_documents"_a, "pairs"_a, "weight"_a.none());

  nb::class_<Pairs>(m, "Pairs", "Documents grouped by query, the pairs among them and their loss.")
      .def(nb::new_(&Pairs::of_levels), "n_rows"_a, "offsets"_a, "rows"_a.none(), "level"_a,
           "n_levels"_a, "query_weight"_a, "preferred"_a.none(), "other"_a.none(),
           "margin"_a.none(), "adjacent"_a, "pieces"_a)
      .def_static("of_list", &Pairs::of_list, "n_rows"_a, "offsets"_a, "rows"_a.none(),
                  "incidence"_a, "query_weight"_a, "margin"_a.none(), "pieces"_a);

  nb::class_<Point>(m, "Point", "What a vector of scores leaves for Hessian-vector products.");

  bind_letor(m);
  bind_sgd(m);

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
  m.def("hessian", &hessian_at, "X"_a, "point"_a, "threads"_a);
  m.def("hess_diag", &hess_diag_at, "X"_a, "point"_a, "threads"_a);
  m.def("transpose_dot", &transpose_at, "X"_a, "pairs"_a, "z"_a, "threads"_a, "X' z.");
  m.def("query_squares", &query_squares_at, "X"_a, "pairs"_a, "size"_a, "threads"_a,
        "Sum over queries of (size * largest |x|)^2, by column.");
  m.def("transpose_dot_by_group", &transpose_groups_at, "X"_a, "pairs"_a, "z"_a, "bounds"_a,
        "threads"_a, "X' z of the documents between two neighbouring bounds, a row a group.");
  m.def("coordinate_descent", &descend, "H"_a, "u"_a, "residual"_a, "l1"_a, "l2"_a, "positive"_a,
        "max_passes"_a, "tol"_a,
        "Minimise u'Hu / 2 - b'u + l1 |u|_1 + l2 |u|^2 / 2, given u and b - Hu.");
  m.def("rank_labels", &ranked_labels, "y"_a, "offsets"_a, "threads"_a,
        "Level of each document; by query: levels, pairs, pairs of adjacent levels.");
  m.def("rank_documents", &ranked_documents, "scores"_a, "offsets"_a, "threads"_a,
        "Documents of each query by descending score, ties in document order.");
  m.def("instruction_sets", &instruction_sets,
        "Variants of the kernels that this machine can run; the last is in use.");
  m.def(
      "use_instruction_set",
      [](const std::string& name) {
        require(use_instruction_set(name), "this machine has no instruction set of that name");
      },
      "name"_a, "Use another of them, to test and measure it.");
}

}  // namespace marginrank
