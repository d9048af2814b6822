// Coverage-guided fuzzing of the LETOR parser; see fuzz/run.
#include <cstdlib>
#include <vector>

#include "text/letor_parser.hpp"

using namespace marginrank;

namespace {

// Parses in two pieces, cut at a line end, and checks what must hold of any input.
template <class T>
void check(const char* text, Index size, const LetorOptions& options) {
  LetorParser<T> parser(options);
  const void* middle =
      std::memchr(text + size / 2, '\n', static_cast<std::size_t>(size - size / 2));
  const Index cut = middle ? static_cast<const char*>(middle) - text + 1 : size;
  for (const auto& [first, last] : {std::pair{Index{0}, cut}, std::pair{cut, size}}) {
    if (const auto error = parser.feed(text + first, last - first, 1)) {
      if (error->line < 1 || error->column < 1 || error->what.empty()) std::abort();
      return;
    }
  }
  for (const auto& part : parser.parts()) {
    if (!part.costs.empty() && part.costs.size() != part.labels.size()) std::abort();
    if (!part.costs.empty() && !parser.has_costs()) std::abort();
    for (const double cost : part.costs) {
      if (!std::isfinite(cost) || cost < 0.0) std::abort();
    }
  }
  const Index rows = parser.n_rows(), columns = parser.n_features();
  if (columns > 4096) return;
  std::vector<T> values(static_cast<std::size_t>(parser.n_entries()));
  std::vector<std::int32_t> indices(values.size());
  std::vector<Index> indptr(static_cast<std::size_t>(rows) + 1);
  parser.move_to_csr(values.data(), indices.data(), indptr.data());
  if (indptr.back() > parser.n_entries()) std::abort();
  for (Index k = 0; k < indptr.back(); ++k) {
    if (indices[k] < 0 || indices[k] >= columns || !std::isfinite(values[k])) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const char* text = reinterpret_cast<const char*>(data);
  const auto length = static_cast<Index>(size);
  check<float>(text, length, {});
  check<double>(text, length, {0, 100, 0.5, true});
  return 0;
}
