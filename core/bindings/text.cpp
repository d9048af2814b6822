// LETOR text in and out of Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <tuple>

#include "bindings/checks.hpp"
#include "bindings/matrix.hpp"
#include "bindings/module.hpp"
#include "text/letor_parser.hpp"
#include "text/letor_writer.hpp"

namespace marginrank {
namespace {

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

  // None, or (line, column, message).
  std::optional<std::tuple<Index, Index, nb::bytes>> feed(const nb::bytes& text, Index first,
                                                          Index last, int threads) {
    require(0 <= first && first <= last && last <= static_cast<Index>(text.size()),
            "the text ends before `last`");
    const char* begin = text.c_str() + first;
    std::optional<LetorError> error;
    {
      const GilReleased released;
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

  // None, or the cost of each document, 1 where its line has none.
  nb::object costs() {
    return std::visit([](auto& parser) { return costs_from(parser); }, parser_);
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
      const GilReleased released;
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
      const GilReleased released;
      parser.move_to_csr(values.data(), columns.data(), indptr.data());
    }
    return nb::make_tuple(values, columns, indptr);
  }

  template <class T>
  static nb::object costs_from(LetorParser<T>& parser) {
    if (!parser.has_costs()) return nb::none();
    std::vector<double> costs;
    costs.reserve(static_cast<std::size_t>(parser.n_rows()));
    for (const auto& part : parser.parts()) {
      costs.insert(costs.end(), part.costs.begin(), part.costs.end());
      costs.resize(costs.size() + part.labels.size() - part.costs.size(), 1.0);
    }
    return nb::cast(to_array(std::move(costs)));
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
  require(static_cast<Index>(y.size()) == X.n_rows(), "y must have one entry per row");
  require(static_cast<Index>(prefixes.size()) == last - first &&
              static_cast<Index>(suffixes.size()) == last - first,
          "prefixes and suffixes must have one entry per row");
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

}  // namespace

void bind_text(nb::module_& m) {
  nb::class_<LetorReader>(m, "LetorReader", "Parses LETOR text, piece by piece.")
      .def(nb::init<bool, Index, Index, std::optional<double>, bool>(), "float64"_a,
           "first_index"_a, "n_features"_a, "missing"_a.none(), "keep_comments"_a)
      .def("begin_source", &LetorReader::begin_source)
      .def("feed", &LetorReader::feed, "text"_a, "first"_a, "last"_a, "threads"_a,
           "Parse whole lines; returns None or (line, column, message).")
      .def("shape", &LetorReader::shape)
      .def("dense", &LetorReader::dense, "threads"_a)
      .def("csr", &LetorReader::csr)
      .def("costs", &LetorReader::costs)
      .def("documents", &LetorReader::documents);
  m.def("format_letor", &format_letor, "X"_a, "y"_a, "first"_a, "last"_a, "prefixes"_a,
        "suffixes"_a, "first_index"_a, "Rows of X as LETOR text.");
}

}  // namespace marginrank
