"""Train a RankSVM on generated data and judge it on queries it has not seen."""

import time

import numpy as np

from marginrank import RankSVM, make_ranking, metrics

X, y, qid = make_ranking(
    n_queries=1000, docs_per_query=(60, 140), n_features=100, correlation=0.5, random_state=0,
    dtype=np.float32,
)  # fmt: skip
train = qid < 800
test = ~train

model = RankSVM(C=0.01, verbose=1)
start = time.perf_counter()
model.fit(X[train], y[train], qid=qid[train])
seconds = time.perf_counter() - start

accuracy = metrics.pairwise_accuracy(y[test], model.predict(X[test]), qid[test])
print()
print(f"documents           {train.sum():,} to learn from, {test.sum():,} to judge on")
print(f"pairs               {model.n_pairs_:,}, none of them written down")
print(f"seconds             {seconds:.2f}")
print(f"objective           {model.objective_:.6f} ({model.stop_reason_.value})")
print(f"pairwise accuracy   {accuracy:.4f} on new queries")
