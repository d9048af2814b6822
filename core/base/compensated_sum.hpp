// Sums of many numbers.
#pragma once

namespace marginrank {

// A compensated (Kahan) sum, whose error does not grow with its length.
class CompensatedSum {
 public:
  void operator+=(double x) {
    const double sum = sum_ + x;
    const double added = sum - sum_;
    lost_ += (sum_ - (sum - added)) + (x - added);
    sum_ = sum;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0, lost_ = 0;
};

}  // namespace marginrank
