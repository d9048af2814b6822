// The Python module marginrank._core: numpy arrays in, numpy arrays out, no mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <omp.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>

#include "diagonal.hpp"
#include "fused.hpp"
#include "letor.hpp"
#include "letor_writer.hpp"
#include "sgd.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace marginrank {
namespace {

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows2 = nb::ndarray<const T, nb::ndim<2>, nb::any_contig, nb::device::cpu>;
template <class T>
using Strided2 = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
using Result1 = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <class T>
using Result2 = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

template <class T>
Result1<T> new_array(std::size_t n) {
  T* data = new T[n];
  return Result1<T>(data, {n},
                    nb::capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }));
}

template <class T>
Result1<T> to_array(std::vector<T>&& values) {
  auto* held = new std::vector<T>(std::move(values));
  return Result1<T>(held->data(), {held->size()}, nb::capsule(held, [](void* p) noexcept {
                      delete static_cast<std::vector<T>*>(p);
                    }));
}

constexpr Index kLargestQuery = Index{1} << 30;  // twice that must fit a Position

void require(bool condition, const char* message) {
  if (!condition) throw nb::value_error(message);
}

// X, whatever its layout, together with the Python objects its memory belongs to.
class Matrix {
 public:
  using View =
      std::variant<Dense<float>, Dense<double>, Csr<float, std::int32_t>, Csr<double, std::int32_t>,
                   Csr<float, std::int64_t>, Csr<double, std::int64_t>>;

  template <class T>
  static Matrix dense(const Strided2<T>& x) {
    require(x.shape(1) <= 1 || x.stride(1) == 1, "the rows of a dense matrix must be contiguous");
    return Matrix(Dense<T>(x.data(), static_cast<Index>(x.shape(0)), static_cast<Index>(x.shape(1)),
                           x.stride(0)),
                  nb::cast(x), nb::none(), nb::none());
  }

  template <class T, class I>
  static Matrix csr(const Array1<T>& data, const Array1<I>& indices, const Array1<I>& indptr,
                    Index n_columns) {
    require(indptr.size() >= 1 && indptr(0) == 0, "indptr must begin with 0");
    const auto n_rows = static_cast<Index>(indptr.size()) - 1;
    const auto nnz = static_cast<Index>(indptr(indptr.size() - 1));
    require(static_cast<Index>(data.size()) >= nnz && static_cast<Index>(indices.size()) >= nnz,
            "indptr points beyond the stored entries");
    {
      nb::gil_scoped_release release;
      require(is_canonical(indices.data(), indptr.data(), n_rows, n_columns),
              "column indices must lie inside the matrix and increase strictly in each row");
    }
    return Matrix(Csr<T, I>(data.data(), indices.data(), indptr.data(), n_rows, n_columns),
                  nb::cast(data), nb::cast(indices), nb::cast(indptr));
  }

  template <class F>
  auto visit(F&& f) const {
    return std::visit(std::forward<F>(f), view_);
  }

  Index n_rows() const {
    return visit([](const auto& X) { return X.n_rows(); });
  }
  Index n_entries() const {
    return visit([](const auto& X) { return X.n_entries(); });
  }
  Index n_columns() const {
    return visit([](const auto& X) { return X.n_columns(); });
  }

 private:
  Matrix(View view, nb::object a, nb::object b, nb::object c)
      : view_(std::move(view)), owners_{std::move(a), std::move(b), std::move(c)} {}

  template <class I>
  static bool is_canonical(const I* indices, const I* indptr, Index n_rows, Index n_columns) {
    for (Index i = 0; i < n_rows; ++i) {
      if (indptr[i] > indptr[i + 1]) return false;
    }
    bool fine = true;
    for (Index i = 0; i < n_rows; ++i) {
      Index previous = -1;
      for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
        fine = fine && indices[k] > previous && indices[k] < n_columns;
        previous = indices[k];
      }
    }
    return fine;
  }

  View view_;
  nb::object owners_[3];
};

// The pairs of a data set and the loss on them; checks everything the kernels rely on.
class Pairs {
 public:
  Pairs(Index n_rows, Array1<Index> offsets, std::optional<Array1<Index>> rows, Array1<Level> level,
        Array1<Level> n_levels, Array1<double> query_weight,
        std::optional<Array2<double>> preferred, std::optional<Array2<double>> other,
        std::optional<Array1<double>> margin, bool adjacent, const Array2<double>& pieces)
      : offsets_(std::move(offsets)),
        rows_(std::move(rows)),
        level_(std::move(level)),
        n_levels_(std::move(n_levels)),
        query_weight_(std::move(query_weight)),
        preferred_(std::move(preferred)),
        other_(std::move(other)),
        margin_(std::move(margin)),
        n_rows_(n_rows) {
    check_sizes(pieces);
    problem_.n_queries = static_cast<Index>(n_levels_.size());
    problem_.offsets = offsets_.data();
    problem_.rows = rows_ ? rows_->data() : nullptr;
    problem_.level = level_.data();
    problem_.n_levels = n_levels_.data();
    problem_.query_weight = query_weight_.data();
    problem_.rank = preferred_ ? static_cast<int>(preferred_->shape(1)) : 0;
    problem_.preferred = preferred_ ? preferred_->data() : nullptr;
    problem_.other = other_ ? other_->data() : nullptr;
    problem_.margin = margin_ ? margin_->data() : nullptr;
    problem_.selection = adjacent ? Selection::adjacent : Selection::all;
    for (std::size_t m = 0; m < pieces.shape(0); ++m) {
      problem_.pieces.push_back({pieces(m, 0), pieces(m, 1), static_cast<int>(pieces(m, 2))});
    }
    check_contents();
  }

  const PairProblem& problem() const { return problem_; }
  std::size_t n_documents() const { return level_.size(); }

  // Solvers make and drop points all the time; one is kept, as fresh memory costs a page fault
  // each.
  std::unique_ptr<PairPoint> new_point() {
    return spare_ ? std::move(spare_) : std::make_unique<PairPoint>(problem_);
  }
  void recycle(std::unique_ptr<PairPoint> point) { spare_ = std::move(point); }

  void check_matrix(const Matrix& X) const {
    require(X.n_rows() == n_rows_, "the matrix has another number of rows than the pairs");
  }

 private:
  void check_sizes(const Array2<double>& pieces) const {
    const std::size_t l = level_.size();
    require(offsets_.size() == n_levels_.size() + 1,
            "offsets must have one entry more than queries");
    require(query_weight_.size() == n_levels_.size(), "query_weight must have an entry a query");
    require(!rows_ || rows_->size() == l, "rows must have an entry a document");
    require(rows_ || static_cast<Index>(l) == n_rows_, "without rows, documents must be the rows");
    require(preferred_.has_value() == other_.has_value(), "preferred and other come together");
    require(!preferred_ || (preferred_->shape(0) == l && other_->shape(0) == l &&
                            preferred_->shape(1) == other_->shape(1) && preferred_->shape(1) > 0),
            "preferred and other must be documents x rank");
    require(!margin_ || margin_->size() == l, "margin must have an entry a document");
    require(pieces.shape(0) > 0 && pieces.shape(1) == 3, "pieces must be rows of three numbers");
    for (std::size_t m = 0; m < pieces.shape(0); ++m) {
      require(pieces(m, 2) == 1.0 || pieces(m, 2) == 2.0, "a piece has power 1 or 2");
    }
  }

  void check_contents() const {
    const auto l = static_cast<Index>(level_.size());
    require(problem_.offsets[0] == 0 && problem_.n_documents() == l,
            "offsets must span all documents");
    for (Index q = 0; q < problem_.n_queries; ++q) {
      const Range docs = problem_.documents(q);
      require(docs.size() >= 0, "offsets must increase");
      for (Index i = docs.first; i < docs.last; ++i) {
        require(problem_.level[i] >= 0 && problem_.level[i] < problem_.n_levels[q],
                "levels must lie between 0 and the query's number of levels");
        require(!rows_ || (problem_.rows[i] >= 0 && problem_.rows[i] < n_rows_),
                "rows must lie inside the matrix");
      }
    }
  }

  Array1<Index> offsets_;
  std::optional<Array1<Index>> rows_;
  Array1<Level> level_, n_levels_;
  Array1<double> query_weight_;
  std::optional<Array2<double>> preferred_, other_;
  std::optional<Array1<double>> margin_;
  Index n_rows_;
  PairProblem problem_;
  std::unique_ptr<PairPoint> spare_;
};

// A PairPoint that keeps its pairs alive and gives its memory back to them.
class Point {
 public:
  explicit Point(nb::object owner)
      : owner_(std::move(owner)), pairs_(nb::cast<Pairs*>(owner_)), state_(pairs_->new_point()) {}
  Point(Point&&) = default;
  ~Point() {
    if (state_) pairs_->recycle(std::move(state_));
  }

  const Pairs& pairs() const { return *pairs_; }
  PairPoint& state() { return *state_; }
  const PairPoint& state() const { return *state_; }

 private:
  nb::object owner_;
  Pairs* pairs_;
  std::unique_ptr<PairPoint> state_;
};

void check_vector(const Array1<double>& v, Index n, const char* message) {
  require(static_cast<Index>(v.size()) == n, message);
}

// (value, score gradient, gradient, scores, point) at w
auto evaluate_at(const Matrix& X, nb::object owner, const Array1<double>& w, int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  pairs.check_matrix(X);
  check_vector(w, X.n_columns(), "w must have an entry a column");
  const std::size_t l = pairs.n_documents();
  auto scores = new_array<double>(l), z = new_array<double>(l);
  auto gradient = new_array<double>(w.size());
  Point point(owner);
  double value;
  {
    nb::gil_scoped_release release;
    value = X.visit([&](const auto& view) {
      return evaluate(view, pairs.problem(), w.data(), scores.data(), z.data(), gradient.data(),
                      point.state(), threads);
    });
  }
  return std::make_tuple(value, z, gradient, scores, std::move(point));
}

// (value, score gradient, point) at given scores
auto evaluate_scores(nb::object owner, const Array1<double>& scores, const Point* like,
                     int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  check_vector(scores, static_cast<Index>(pairs.n_documents()),
               "scores must have an entry a document");
  auto z = new_array<double>(pairs.n_documents());
  Point point(owner);
  const bool same_documents = like && like->pairs().problem().offsets == pairs.problem().offsets;
  const PairPoint* guess = same_documents ? &like->state() : nullptr;
  double value;
  {
    nb::gil_scoped_release release;
    value = evaluate_pairs(pairs.problem(), scores.data(), z.data(), point.state(), guess, threads);
  }
  return std::make_tuple(value, z, std::move(point));
}

auto active_weights_at(nb::object owner, const Array1<double>& scores, int threads) {
  const auto& pairs = nb::cast<const Pairs&>(owner);
  check_vector(scores, static_cast<Index>(pairs.n_documents()),
               "scores must have an entry a document");
  auto weights = new_array<double>(static_cast<std::size_t>(pairs.problem().n_queries));
  std::fill_n(weights.data(), weights.size(), 0.0);  // queries without documents are not visited
  Point point(owner);
  nb::gil_scoped_release release;
  active_weights(pairs.problem(), scores.data(), point.state(), weights.data(), threads);
  return weights;
}

auto hess_vec_scores(const Point& point, const Array1<double>& u, int threads) {
  check_vector(u, static_cast<Index>(point.pairs().n_documents()),
               "u must have an entry a document");
  auto z = new_array<double>(u.size());
  nb::gil_scoped_release release;
  hess_vec_pairs(point.pairs().problem(), point.state(), u.data(), z.data(), threads);
  return z;
}

// (H v, X v)
auto hess_vec_at(const Matrix& X, const Point& point, const Array1<double>& v, int threads) {
  point.pairs().check_matrix(X);
  check_vector(v, X.n_columns(), "v must have an entry a column");
  auto out = new_array<double>(v.size());
  auto u = new_array<double>(point.pairs().n_documents());
  {
    nb::gil_scoped_release release;
    X.visit([&](const auto& view) {
      hess_vec(view, point.pairs().problem(), point.state(), v.data(), u.data(), out.data(),
               threads);
    });
  }
  return std::make_tuple(out, u);
}

auto hessian_at(const Matrix& X, const Point& point, int threads) {
  point.pairs().check_matrix(X);
  const auto n = static_cast<std::size_t>(X.n_columns());
  auto* data = new double[n * n];
  Result2<double> H(data, {n, n},
                    nb::capsule(data, [](void* p) noexcept { delete[] static_cast<double*>(p); }));
  nb::gil_scoped_release release;
  X.visit([&](const auto& view) {
    hessian(view, point.pairs().problem(), point.state(), data, threads);
  });
  return H;
}

auto hess_diag_at(const Matrix& X, const Point& point, int threads) {
  point.pairs().check_matrix(X);
  auto diag = new_array<double>(static_cast<std::size_t>(X.n_columns()));
  nb::gil_scoped_release release;
  X.visit([&](const auto& view) {
    hess_diag(view, point.pairs().problem(), point.state(), diag.data(), threads);
  });
  return diag;
}

auto transpose_at(const Matrix& X, const Pairs& pairs, const Array1<double>& z, int threads) {
  pairs.check_matrix(X);
  check_vector(z, static_cast<Index>(pairs.n_documents()), "z must have an entry a document");
  auto out = new_array<double>(static_cast<std::size_t>(X.n_columns()));
  nb::gil_scoped_release release;
  X.visit([&](const auto& view) {
    Sweeper(view, pairs.problem(), threads).transpose(z.data(), out.data());
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
  nb::gil_scoped_release release;
  X.visit([&](const auto& view) {
    for_each_row_block(n_documents, threads,
                       [&](Index, Range block) { view.dots(row, block, v.data(), u.data()); });
  });
  return u;
}

double sum_of(const Matrix& X, int threads) {
  nb::gil_scoped_release release;
  return X.visit([&](const auto& view) { return sum(view, threads); });
}

void check_offsets(const Array1<Index>& offsets, std::size_t n_documents) {
  require(offsets.size() >= 1 && offsets(0) == 0, "offsets must begin with 0");
  require(offsets(offsets.size() - 1) == static_cast<Index>(n_documents),
          "offsets must end with the number of documents");
  for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
    require(offsets(q) <= offsets(q + 1), "offsets must increase");
    require(offsets(q + 1) - offsets(q) <= kLargestQuery,
            "a query has more than 2**30 documents; split it");
  }
}

auto ranked_documents(const Array1<double>& scores, const Array1<Index>& offsets, int threads) {
  check_offsets(offsets, scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    require(std::isfinite(scores(i)), "scores must be finite");
  }
  auto order = new_array<Index>(scores.size());
  nb::gil_scoped_release release;
  rank_documents(scores.data(), offsets.data(), static_cast<Index>(offsets.size()) - 1,
                 order.data(), threads);
  return order;
}

auto ranked_labels(const Array1<double>& y, const Array1<Index>& offsets, int threads) {
  check_offsets(offsets, y.size());
  Levels levels;
  {
    nb::gil_scoped_release release;
    levels = rank_labels(y.data(), offsets.data(), static_cast<Index>(offsets.size()) - 1, threads);
  }
  return std::make_tuple(to_array(std::move(levels.level)), to_array(std::move(levels.n_levels)),
                         to_array(std::move(levels.n_pairs)),
                         to_array(std::move(levels.n_adjacent_pairs)));
}

template <class T>
using Mutable1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The vectors of a stochastic gradient run, which belong to the caller and are changed in place.
SgdState sgd_state(const Mutable1<double>& w, const Mutable1<double>& average,
                   const Mutable1<double>& gradient, const Mutable1<double>& curvature,
                   const Array1<double>& inverse, const Mutable1<double>& counters) {
  const std::size_t n = w.size();
  require(average.size() == n && gradient.size() == n, "w, average and gradient differ in size");
  require(curvature.size() == n || curvature.size() == n * n, "curvature must be n or n x n");
  require(inverse.size() == curvature.size(), "inverse must be as large as curvature");
  static_assert(sizeof(SgdCounters) % sizeof(double) == 0);
  require(counters.size() * sizeof(double) == sizeof(SgdCounters), "counters have another number");
  return {static_cast<Index>(n),
          w.data(),
          average.data(),
          gradient.data(),
          curvature.data(),
          inverse.data(),
          n > 1 && curvature.size() == n * n,
          reinterpret_cast<SgdCounters*>(counters.data())};
}

SgdOptions sgd_options(const Array1<double>& values) {
  require(values.size() == 7, "options are seven numbers");
  return {values(0), values(1), values(2), values(3), values(4), values(5), values(6)};
}

// The number of queries of `order` that were worked on until the next event.
Index sgd_run(const Matrix& X, const Pairs& pairs, const Pairs& curved,
              const Array1<double>& weight, const Array1<Index>& order, const Mutable1<double>& w,
              const Mutable1<double>& average, const Mutable1<double>& gradient,
              const Mutable1<double>& curvature, const Array1<double>& inverse,
              const Mutable1<double>& counters, const Array1<double>& options, int threads) {
  pairs.check_matrix(X);
  check_vector(weight, pairs.problem().n_queries, "weight must have an entry a query");
  require(curved.problem().offsets == pairs.problem().offsets, "curved has other queries");
  require(static_cast<Index>(w.size()) == X.n_columns(), "w must have an entry a column");
  for (std::size_t k = 0; k < order.size(); ++k) {
    require(order(k) >= 0 && order(k) < pairs.problem().n_queries, "order names no query");
  }
  SgdState state = sgd_state(w, average, gradient, curvature, inverse, counters);
  const SgdOptions values = sgd_options(options);
  nb::gil_scoped_release release;
  return X.visit([&](const auto& view) {
    SgdRun run(view, pairs.problem(), curved.problem(), weight.data(), values, state, threads);
    return run(order.data(), static_cast<Index>(order.size()));
  });
}

void sgd_flush(const Mutable1<double>& w, const Mutable1<double>& average,
               const Mutable1<double>& gradient, const Mutable1<double>& curvature,
               const Array1<double>& inverse, const Mutable1<double>& counters,
               const Array1<double>& options) {
  SgdState state = sgd_state(w, average, gradient, curvature, inverse, counters);
  sgd_step(state, sgd_options(options));
}

// Reads LETOR text into float32 or float64.
class LetorReader {
 public:
  LetorReader(bool float64, Index first_index, Index n_features, std::optional<double> missing,
              bool keep_comments)
      : parser_(LetorParser<float>({})) {
    const LetorOptions options{first_index, n_features, missing, keep_comments};
    if (float64) {
      parser_ = LetorParser<double>(options);
    } else {
      parser_ = LetorParser<float>(options);
    }
  }

  void begin_source() {
    std::visit([](auto& parser) { parser.begin_source(); }, parser_);
  }

  // None, or (line, column, what is wrong).
  std::optional<std::tuple<Index, Index, nb::bytes>> feed(const nb::bytes& text, Index first,
                                                          Index last, int threads) {
    require(0 <= first && first <= last && last <= static_cast<Index>(text.size()),
            "the text ends before `last`");
    const char* begin = text.c_str() + first;
    std::optional<LetorError> error;
    {
      nb::gil_scoped_release release;
      error = std::visit([&](auto& parser) { return parser.feed(begin, last - first, threads); },
                         parser_);
    }
    if (!error) return std::nullopt;
    return std::make_tuple(error->line, error->column,
                           nb::bytes(error->what.data(), error->what.size()));
  }

  // (rows, features, entries, whether lines have a qid)
  auto shape() const {
    return std::visit(
        [](const auto& parser) {
          return std::make_tuple(parser.n_rows(), parser.n_features(), parser.n_entries(),
                                 parser.has_qid());
        },
        parser_);
  }

  nb::object dense(int threads) {
    return std::visit([&](auto& parser) { return dense_from(parser, threads); }, parser_);
  }

  nb::object csr() {
    return std::visit([&](auto& parser) { return csr_from(parser); }, parser_);
  }

  // (labels, lengths of runs of one query id, their ids, comments)
  nb::tuple documents() {
    return std::visit([](auto& parser) { return documents_from(parser); }, parser_);
  }

 private:
  template <class T>
  static nb::object dense_from(LetorParser<T>& parser, int threads) {
    const auto rows = static_cast<std::size_t>(parser.n_rows());
    const auto columns = static_cast<std::size_t>(parser.n_features());
    // calloc leaves the zeros to the operating system, page by page as they are reached.
    T* table = static_cast<T*>(std::calloc(std::max<std::size_t>(rows * columns, 1), sizeof(T)));
    if (!table) throw std::bad_alloc();
    nb::capsule owner(table, [](void* p) noexcept { std::free(p); });
    {
      nb::gil_scoped_release release;
      parser.move_to_dense(table, threads);
    }
    return nb::cast(Result2<T>(table, {rows, columns}, owner));
  }

  template <class T>
  static nb::object csr_from(LetorParser<T>& parser) {
    const auto entries = static_cast<std::size_t>(parser.n_entries());
    auto values = new_array<T>(entries);
    auto columns = new_array<std::int32_t>(entries);
    auto indptr = new_array<Index>(static_cast<std::size_t>(parser.n_rows()) + 1);
    {
      nb::gil_scoped_release release;
      parser.move_to_csr(values.data(), columns.data(), indptr.data());
    }
    return nb::make_tuple(values, columns, indptr);
  }

  template <class T>
  static nb::tuple documents_from(LetorParser<T>& parser) {
    std::vector<double> labels;
    std::vector<Index> lengths;
    nb::list ids, comments;
    labels.reserve(static_cast<std::size_t>(parser.n_rows()));
    for (const auto& part : parser.parts()) {
      labels.insert(labels.end(), part.labels.begin(), part.labels.end());
      for (const QueryRun& run : part.runs) {
        lengths.push_back(run.length);
        ids.append(nb::bytes(run.id.data(), run.id.size()));
      }
      for (const std::string& comment : part.comments) {
        comments.append(nb::bytes(comment.data(), comment.size()));
      }
    }
    return nb::make_tuple(to_array(std::move(labels)), to_array(std::move(lengths)), ids, comments);
  }

  std::variant<LetorParser<float>, LetorParser<double>> parser_;
};

// The lines of the rows [first, last): label, prefix (the qid), features, suffix (the comment).
nb::bytes format_letor(const Matrix& X, const Array1<double>& y, Index first, Index last,
                       const nb::list& prefixes, const nb::list& suffixes, Index first_index) {
  require(0 <= first && first <= last && last <= X.n_rows(), "rows must lie inside the matrix");
  require(static_cast<Index>(y.size()) == X.n_rows(), "y must have an entry a row");
  require(static_cast<Index>(prefixes.size()) == last - first &&
              static_cast<Index>(suffixes.size()) == last - first,
          "prefixes and suffixes must have an entry a row");
  std::string text;
  for (Index i = first; i < last; ++i) {
    append_number(text, y(static_cast<std::size_t>(i)));
    const auto prefix = nb::cast<nb::bytes>(prefixes[static_cast<std::size_t>(i - first)]);
    text.append(prefix.c_str(), prefix.size());
    X.visit([&](const auto& view) { append_features(view, i, first_index, i == 0, text); });
    const auto suffix = nb::cast<nb::bytes>(suffixes[static_cast<std::size_t>(i - first)]);
    text.append(suffix.c_str(), suffix.size());
    text += '\n';
  }
  return nb::bytes(text.data(), text.size());
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
  matrix.def("sum", &sum_of, "threads"_a = 1, "Sum of all entries: one plain sweep over X.");

  nb::class_<Pairs>(m, "Pairs", "Documents grouped by query, the pairs among them and their loss.")
      .def(
          nb::init<Index, Array1<Index>, std::optional<Array1<Index>>, Array1<Level>, Array1<Level>,
                   Array1<double>, std::optional<Array2<double>>, std::optional<Array2<double>>,
                   std::optional<Array1<double>>, bool, const Array2<double>&>(),
          "n_rows"_a, "offsets"_a, "rows"_a.none(), "level"_a, "n_levels"_a, "query_weight"_a,
          "preferred"_a.none(), "other"_a.none(), "margin"_a.none(), "adjacent"_a, "pieces"_a);

  nb::class_<Point>(m, "Point", "What a vector of scores leaves for Hessian-vector products.");

  nb::class_<LetorReader>(m, "LetorReader", "Parses LETOR text, piece by piece.")
      .def(nb::init<bool, Index, Index, std::optional<double>, bool>(), "float64"_a,
           "first_index"_a, "n_features"_a, "missing"_a.none(), "keep_comments"_a)
      .def("begin_source", &LetorReader::begin_source)
      .def("feed", &LetorReader::feed, "text"_a, "first"_a, "last"_a, "threads"_a,
           "Parse whole lines; returns None or (line, column, what is wrong).")
      .def("shape", &LetorReader::shape)
      .def("dense", &LetorReader::dense, "threads"_a)
      .def("csr", &LetorReader::csr)
      .def("documents", &LetorReader::documents);
  m.def("format_letor", &format_letor, "X"_a, "y"_a, "first"_a, "last"_a, "prefixes"_a,
        "suffixes"_a, "first_index"_a, "Rows of X as LETOR text.");

  m.def("evaluate", &evaluate_at, "X"_a, "pairs"_a, "w"_a, "threads"_a,
        "Value, score gradient, gradient, scores and point at w, in one sweep over X.");
  m.def("evaluate_scores", &evaluate_scores, "pairs"_a, "scores"_a, "like"_a.none(), "threads"_a,
        "Value, score gradient and point at given scores; X is not touched.");
  m.def("active_weights", &active_weights_at, "pairs"_a, "scores"_a, "threads"_a,
        "By query, the weight of the pairs that are active for the first piece.");
  m.def("hess_vec", &hess_vec_at, "X"_a, "point"_a, "v"_a, "threads"_a,
        "Hessian-vector product and X v, in one sweep over X.");
  m.def("hess_vec_scores", &hess_vec_scores, "point"_a, "u"_a, "threads"_a,
        "Product of the Hessian in score space with u.");
  m.def("hessian", &hessian_at, "X"_a, "point"_a, "threads"_a);
  m.def("hess_diag", &hess_diag_at, "X"_a, "point"_a, "threads"_a);
  m.def("transpose_dot", &transpose_at, "X"_a, "pairs"_a, "z"_a, "threads"_a, "X' z.");
  m.def("sgd_run", &sgd_run, "X"_a, "pairs"_a, "curved"_a, "weight"_a, "order"_a, "w"_a.noconvert(),
        "average"_a.noconvert(), "gradient"_a.noconvert(), "curvature"_a.noconvert(), "inverse"_a,
        "counters"_a.noconvert(), "options"_a, "threads"_a,
        "Stochastic gradient steps over queries; how many were done.");
  m.def("sgd_step", &sgd_flush, "w"_a.noconvert(), "average"_a.noconvert(),
        "gradient"_a.noconvert(), "curvature"_a.noconvert(), "inverse"_a, "counters"_a.noconvert(),
        "options"_a, "A step over what the batch holds.");
  m.def("rank_labels", &ranked_labels, "y"_a, "offsets"_a, "threads"_a,
        "Level of each document; by query: levels, pairs, pairs of adjacent levels.");
  m.def("rank_documents", &ranked_documents, "scores"_a, "offsets"_a, "threads"_a,
        "Documents of each query by descending score, ties in document order.");
  m.def("max_threads", [] { return omp_get_max_threads(); });
}

}  // namespace marginrank
