// Which of the compiled variants of the inner loops is in use.
#pragma once

#include <string>
#include <vector>

namespace marginrank {

// The variants this machine can run, the best last.
std::vector<std::string> instruction_sets();

// All that were compiled, whatever this machine is: what a wheel is to have inside.
std::vector<std::string> compiled_instruction_sets();

// Takes another of them from now on, to test and measure it; false if there is none of that name.
bool use_instruction_set(const std::string& name);

}  // namespace marginrank
