"""
Preferences on embeddings
=========================

Nobody can say how good an answer is on a scale from 0 to 100, but people can say which of two is
better. A reward model turns such comparisons into scores. Here the "answers" are images of digits,
the "annotators" prefer the larger digit, and one comparison in ten is wrong.
"""

# %%
# Embeddings and comparisons
# --------------------------
# 1,797 images become vectors of 300 numbers, as a neural network would make them. Annotators
# compare random pairs of the first thousand images.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem

from marginrank import RankSVM

plt.style.use("marginrank.plots.marginrank")

images, digit = load_digits(return_X_y=True)
embedding = Nystroem(gamma=0.002, n_components=300, random_state=0).fit_transform(images)
rng = np.random.default_rng(0)


def compare(rows, n_pairs, mistakes):
    """Return pairs of rows, the preferred one first."""
    pairs = rng.choice(rows, size=(n_pairs, 2))
    pairs = pairs[digit[pairs[:, 0]] != digit[pairs[:, 1]]]
    wrong = (digit[pairs[:, 0]] > digit[pairs[:, 1]]) == (rng.random(len(pairs)) < mistakes)
    return np.where(wrong[:, None], pairs[:, ::-1], pairs)


train, test = compare(np.arange(1000), 8000, 0.1), compare(np.arange(1000, 1797), 5000, 0.0)

# %%
# More comparisons, better scores
# -------------------------------
# ``fit(X, pairs=...)`` takes row numbers, the preferred document first. The logistic loss on pairs
# is the model of Bradley and Terry, as in reward models.

sizes = [125, 250, 500, 1000, 2000, 4000, len(train)]
accuracy = []
for size in sizes:
    model = RankSVM(C=1.0, loss="logistic").fit(embedding, pairs=train[:size])
    scores = model.predict(embedding)
    accuracy.append(np.mean(scores[test[:, 0]] > scores[test[:, 1]]))
print(f"{len(train):,} comparisons: {accuracy[-1]:.1%} of new pairs are in the right order")

# %%
# The scores
# ----------
# The right panel shows the images that nobody compared. The model knows comparisons only, no digit,
# and puts the digits in order.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=(1, 1.5))
left.plot(sizes, accuracy, marker="o")
left.set_xscale("log")
left.set_xticks(sizes[::2], [f"{size:,}" for size in sizes[::2]])
left.minorticks_off()
left.set(xlabel="comparisons for training", ylabel="new pairs in the right order")
left.yaxis.set_major_formatter("{x:.0%}")
new = np.arange(1000, 1797)
parts = right.violinplot(
    [scores[new][digit[new] == d] for d in range(10)], range(10), showmedians=True, widths=0.9
)
for body in parts["bodies"]:
    body.set(facecolor="C0", alpha=0.35)
right.set_xticks(range(10))
right.set(xlabel="digit of the image, unknown to the model", ylabel="score")
plt.show()

# %%
# Twelve new images in the order of their scores:

sample = rng.choice(new, size=12, replace=False)
figure, axes = plt.subplots(1, 12, figsize=(10, 1.3))
for ax, row in zip(axes, sample[np.argsort(scores[sample])], strict=True):
    ax.imshow(images[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{scores[row]:.1f}", loc="center", size="small")
    ax.set_axis_off()
plt.show()
