// Which of the compiled variants of the inner loops is in use.
#pragma once

#include <string>
#include <vector>

namespace marginrank {

// The variants this machine can run, the best last.
std::vector<std::string> instruction_sets();

// All compiled variants, whether or not this machine can run them.
std::vector<std::string> compiled_instruction_sets();

// Switches to another variant, for tests and measurements; false if there is none of that name.
bool use_instruction_set(const std::string& name);

}  // namespace marginrank
