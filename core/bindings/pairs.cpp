// Pairs from Python: from levels or from a list, checked before any kernel sees them.
#include "bindings/pairs.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <tuple>

#include "bindings/module.hpp"

namespace marginrank {
namespace {

// Sets what all kinds of pairs have in common, after checking what the kernels rely on.
void set_documents(Documents& problem, Index n_rows, std::size_t n_documents,
                   const Array1<Index>& offsets, const std::optional<Array1<Index>>& rows,
                   const Array1<double>& query_weight, const std::optional<Array1<double>>& margin,
                   const Array2<double>& pieces) {
  check_offsets(offsets, n_documents);
  require(query_weight.size() + 1 == offsets.size(), "query_weight must have one entry per query");
  require(!rows || rows->size() == n_documents, "rows must have one entry per document");
  require(rows || static_cast<Index>(n_documents) == n_rows,
          "without rows, documents must be the rows");
  if (rows) check_rows(*rows, n_rows);
  require(!margin || margin->size() == n_documents, "margin must have one entry per document");
  require(pieces.shape(0) > 0 && pieces.shape(1) == 3, "pieces must be rows of three numbers");
  problem.n_queries = static_cast<Index>(query_weight.size());
  problem.offsets = offsets.data();
  problem.rows = rows ? rows->data() : nullptr;
  problem.query_weight = query_weight.data();
  problem.margin = margin ? margin->data() : nullptr;
  for (std::size_t m = 0; m < pieces.shape(0); ++m) {
    const double power = pieces(m, 2);
    require(power == kLogistic || power == 1.0 || power == 2.0,
            "a piece has power 1 or 2, or 0 for the logistic function");
    problem.pieces.push_back({pieces(m, 0), pieces(m, 1), static_cast<int>(power)});
  }
}

// Keeps the arrays alive that the kernel points into.
template <class... Arrays>
std::shared_ptr<const void> keep(const Arrays&... arrays) {
  return std::make_shared<std::tuple<Arrays...>>(arrays...);
}

// Each piece has all columns of the pair weights, or the columns `ranks` of it.
void set_ranks(PairProblem& problem, const std::optional<Array2<Level>>& ranks) {
  const int rank = std::max(problem.rank, 1);
  require(!ranks || (ranks->shape(0) == problem.pieces.size() && ranks->shape(1) == 2),
          "ranks must have one row of two numbers per piece");
  for (std::size_t m = 0; m < problem.pieces.size(); ++m) {
    Piece& piece = problem.pieces[m];
    piece.first_rank = ranks ? (*ranks)(m, 0) : 0;
    piece.last_rank = ranks ? (*ranks)(m, 1) : rank;
    require(0 <= piece.first_rank && piece.first_rank < piece.last_rank && piece.last_rank <= rank,
            "ranks must be columns of preferred and other");
  }
}

// Sums over levels need hinge terms; listed pairs may have one smooth piece instead.
void check_powers(const Documents& problem, bool is_listed) {
  const auto is_smooth = [](const Piece& p) { return p.power == kLogistic; };
  const auto smooth = std::count_if(problem.pieces.begin(), problem.pieces.end(), is_smooth);
  require(smooth == 0 || (is_listed && problem.pieces.size() == 1),
          "the pieces have power 1 or 2, unless a loss on listed pairs is one smooth piece");
}

void check_levels(const PairProblem& problem) {
  for (Index q = 0; q < problem.n_queries; ++q) {
    const Range docs = problem.documents(q);
    for (Index i = docs.first; i < docs.last; ++i) {
      require(problem.level[i] >= 0 && problem.level[i] < problem.n_levels[q],
              "levels must lie between 0 and the query's number of levels");
    }
  }
}

void check_partners(const ListedProblem& problem) {
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

Incidence make_incidence(Index n_documents, const Array2<Index>& pairs,
                         const std::optional<Array1<double>>& weight,
                         const std::optional<Array1<double>>& margin) {
  require(pairs.shape(1) == 2, "pairs must be rows of two documents");
  require(!weight || weight->size() == pairs.shape(0), "weight must have one entry per pair");
  require(!margin || margin->size() == pairs.shape(0), "margin must have one entry per pair");
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    require(pairs.data()[k] >= 0 && pairs.data()[k] < n_documents,
            "pairs must hold numbers of documents");
  }
  const GilReleased released;
  return Incidence(n_documents, pairs.data(), static_cast<Index>(pairs.shape(0)),
                   weight ? weight->data() : nullptr, margin ? margin->data() : nullptr);
}

}  // namespace

Pairs Pairs::of_levels(Index n_rows, Array1<Index> offsets, std::optional<Array1<Index>> rows,
                       Array1<Level> level, Array1<Level> n_levels, Array1<double> query_weight,
                       std::optional<Array2<double>> preferred, std::optional<Array2<double>> other,
                       std::optional<Array1<double>> margin, Level width,
                       const Array2<double>& pieces, const std::optional<Array2<Level>>& ranks) {
  PairProblem problem;
  const std::size_t l = level.size();
  set_documents(problem, n_rows, l, offsets, rows, query_weight, margin, pieces);
  require(n_levels.size() == query_weight.size(), "n_levels must have one entry per query");
  require(preferred.has_value() == other.has_value(), "preferred and other must be given together");
  require(!preferred || (preferred->shape(0) == l && other->shape(0) == l &&
                         preferred->shape(1) == other->shape(1) && preferred->shape(1) > 0),
          "preferred and other must be documents x rank");
  problem.level = level.data();
  problem.n_levels = n_levels.data();
  problem.rank = preferred ? static_cast<int>(preferred->shape(1)) : 0;
  problem.preferred = preferred ? preferred->data() : nullptr;
  problem.other = other ? other->data() : nullptr;
  require(width > 0, "width must be positive");
  problem.width = width;
  set_ranks(problem, ranks);
  check_powers(problem, false);
  check_levels(problem);
  return Pairs(n_rows, PairKernel(std::move(problem)),
               keep(offsets, rows, level, n_levels, query_weight, preferred, other, margin));
}

Pairs Pairs::of_list(Index n_rows, Array1<Index> offsets, std::optional<Array1<Index>> rows,
                     nb::object incidence, Array1<double> query_weight,
                     std::optional<Array1<double>> margin, const Array2<double>& pieces) {
  ListedProblem problem;
  problem.incidence = &nb::cast<const Incidence&>(incidence);
  const auto l = static_cast<std::size_t>(problem.incidence->n_documents());
  set_documents(problem, n_rows, l, offsets, rows, query_weight, margin, pieces);
  check_powers(problem, true);
  check_partners(problem);
  return Pairs(n_rows, ListedKernel(std::move(problem)),
               keep(offsets, rows, incidence, query_weight, margin));
}

void bind_pairs(nb::module_& m) {
  nb::class_<Incidence>(m, "Incidence", "A list of pairs, by document.")
      .def(nb::new_(&make_incidence), "n_documents"_a, "pairs"_a, "weight"_a.none(),
           "margin"_a.none());

  nb::class_<Pairs>(m, "Pairs", "Documents grouped by query, the pairs among them and their loss.")
      .def(nb::new_(&Pairs::of_levels), nb::kw_only(), "n_rows"_a, "offsets"_a, "rows"_a.none(),
           "level"_a, "n_levels"_a, "query_weight"_a, "preferred"_a.none(), "other"_a.none(),
           "margin"_a.none(), "width"_a, "pieces"_a, "ranks"_a.none())
      .def_static("of_list", &Pairs::of_list, nb::kw_only(), "n_rows"_a, "offsets"_a,
                  "rows"_a.none(), "incidence"_a, "query_weight"_a, "margin"_a.none(), "pieces"_a);

  nb::class_<Point>(m, "Point", "Order and windows at some scores, for Hessian-vector products.");
}

}  // namespace marginrank
