// The pairs of a data set, as the files that know Python share them.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "bindings.hpp"
#include "listed_pairs.hpp"
#include "pairs.hpp"

namespace marginrank {

// Twice the documents of a query must fit a Position.
constexpr Index kLargestQuery = std::numeric_limits<Position>::max() / 2;
static_assert(kLargestQuery == (Index{1} << 30) - 1);

inline void check_offsets(const Array1<Index>& offsets, std::size_t n_documents) {
  require(offsets.size() >= 1 && offsets(0) == 0, "offsets must begin with 0");
  for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
    require(offsets(q) <= offsets(q + 1), "offsets must increase");
    require(offsets(q + 1) - offsets(q) <= kLargestQuery,
            "a query has 2**30 documents or more; split it");
  }
  require(offsets(offsets.size() - 1) == static_cast<Index>(n_documents),
          "offsets must end with the number of documents");
}

// Sets what all kinds of pairs have in common, after checking what the kernels rely on.
inline void set_documents(Documents& problem, Index n_rows, std::size_t n_documents,
                          const Array1<Index>& offsets, const std::optional<Array1<Index>>& rows,
                          const Array1<double>& query_weight,
                          const std::optional<Array1<double>>& margin,
                          const Array2<double>& pieces) {
  check_offsets(offsets, n_documents);
  require(query_weight.size() + 1 == offsets.size(), "query_weight must have an entry a query");
  require(!rows || rows->size() == n_documents, "rows must have an entry a document");
  require(rows || static_cast<Index>(n_documents) == n_rows,
          "without rows, documents must be the rows");
  for (std::size_t i = 0; rows && i < n_documents; ++i) {
    require((*rows)(i) >= 0 && (*rows)(i) < n_rows, "rows must lie inside the matrix");
  }
  require(!margin || margin->size() == n_documents, "margin must have an entry a document");
  require(pieces.shape(0) > 0 && pieces.shape(1) == 3, "pieces must be rows of three numbers");
  problem.n_queries = static_cast<Index>(query_weight.size());
  problem.offsets = offsets.data();
  problem.rows = rows ? rows->data() : nullptr;
  problem.query_weight = query_weight.data();
  problem.margin = margin ? margin->data() : nullptr;
  for (std::size_t m = 0; m < pieces.shape(0); ++m) {
    require(pieces(m, 2) == 1.0 || pieces(m, 2) == 2.0, "a piece has power 1 or 2");
    problem.pieces.push_back({pieces(m, 0), pieces(m, 1), static_cast<int>(pieces(m, 2))});
  }
}

inline void check_vector(const Array1<double>& v, Index n, const char* message) {
  require(static_cast<Index>(v.size()) == n, message);
}

// The pairs of a data set and the loss on them, together with the Python objects their memory
// belongs to.
class Pairs {
 public:
  using Kernel = std::variant<PairKernel, ListedKernel>;
  using State = std::variant<std::unique_ptr<PairPoint>, std::unique_ptr<ListedPoint>>;

  // All pairs of different levels.
  static Pairs of_levels(Index n_rows, Array1<Index> offsets, std::optional<Array1<Index>> rows,
                         Array1<Level> level, Array1<Level> n_levels, Array1<double> query_weight,
                         std::optional<Array2<double>> preferred,
                         std::optional<Array2<double>> other, std::optional<Array1<double>> margin,
                         bool adjacent, const Array2<double>& pieces) {
    PairProblem problem;
    const std::size_t l = level.size();
    set_documents(problem, n_rows, l, offsets, rows, query_weight, margin, pieces);
    require(n_levels.size() == query_weight.size(), "n_levels must have an entry a query");
    require(preferred.has_value() == other.has_value(), "preferred and other come together");
    require(!preferred || (preferred->shape(0) == l && other->shape(0) == l &&
                           preferred->shape(1) == other->shape(1) && preferred->shape(1) > 0),
            "preferred and other must be documents x rank");
    problem.level = level.data();
    problem.n_levels = n_levels.data();
    problem.rank = preferred ? static_cast<int>(preferred->shape(1)) : 0;
    problem.preferred = preferred ? preferred->data() : nullptr;
    problem.other = other ? other->data() : nullptr;
    problem.selection = adjacent ? Selection::adjacent : Selection::all;
    check_levels(problem);
    return Pairs(n_rows, PairKernel(std::move(problem)),
                 keep(offsets, rows, level, n_levels, query_weight, preferred, other, margin));
  }

  // Those of a list.
  static Pairs of_list(Index n_rows, Array1<Index> offsets, std::optional<Array1<Index>> rows,
                       nb::object incidence, Array1<double> query_weight,
                       std::optional<Array1<double>> margin, const Array2<double>& pieces) {
    ListedProblem problem;
    problem.incidence = &nb::cast<const Incidence&>(incidence);
    const auto l = static_cast<std::size_t>(problem.incidence->n_documents());
    set_documents(problem, n_rows, l, offsets, rows, query_weight, margin, pieces);
    check_partners(problem);
    return Pairs(n_rows, ListedKernel(std::move(problem)),
                 keep(offsets, rows, incidence, query_weight, margin));
  }

  const Kernel& kernel() const { return kernel_; }
  const Documents& documents() const {
    return std::visit([](const auto& kernel) -> const Documents& { return kernel.problem(); },
                      kernel_);
  }
  std::size_t n_documents() const { return static_cast<std::size_t>(documents().n_documents()); }

  // Solvers make and drop points all the time; one is kept, as fresh memory costs a page fault
  // each.
  State new_point() {
    if (spare_) return *std::exchange(spare_, std::nullopt);
    return std::visit(
        [](const auto& kernel) -> State {
          using Point = typename std::decay_t<decltype(kernel)>::Point;
          return std::make_unique<Point>(kernel.problem());
        },
        kernel_);
  }
  void recycle(State point) { spare_ = std::move(point); }

  void check_matrix(const Matrix& X) const {
    require(X.n_rows() == n_rows_, "the matrix has another number of rows than the pairs");
  }

 private:
  template <class K>
  Pairs(Index n_rows, K kernel, std::shared_ptr<const void> owners)
      : n_rows_(n_rows), kernel_(std::move(kernel)), owners_(std::move(owners)) {}

  // Keeps the arrays alive that the kernel points into.
  template <class... Arrays>
  static std::shared_ptr<const void> keep(const Arrays&... arrays) {
    return std::make_shared<std::tuple<Arrays...>>(arrays...);
  }

  static void check_levels(const PairProblem& problem) {
    for (Index q = 0; q < problem.n_queries; ++q) {
      const Range docs = problem.documents(q);
      for (Index i = docs.first; i < docs.last; ++i) {
        require(problem.level[i] >= 0 && problem.level[i] < problem.n_levels[q],
                "levels must lie between 0 and the query's number of levels");
      }
    }
  }

  static void check_partners(const ListedProblem& problem) {
    for (Index q = 0; q < problem.n_queries; ++q) {
      const Range docs = problem.documents(q);
      for (Index i = docs.first; i < docs.last; ++i) {
        const Range partners = problem.incidence->partners({i, i + 1});
        for (Index k = partners.first; k < partners.last; ++k) {
          const Index partner = i + problem.incidence->step(k);
          require(docs.first <= partner && partner < docs.last,
                  "both documents of a pair must be of one query");
        }
      }
    }
  }

  Index n_rows_;
  Kernel kernel_;
  std::shared_ptr<const void> owners_;
  std::optional<State> spare_;
};

}  // namespace marginrank
