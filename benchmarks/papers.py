"""Tables and figures of papers 1, 2, 4 and 5 beside what marginrank finds on the same data.

    python benchmarks/papers.py [--json results.json] [--quick] [--only SECTION ...]
        [--liblinear-ranksvm PATH] [--svm-rank PATH]

Needs the folder that MARGINRANK_DATA names. Times are ratios to something measured in the same run.
--quick runs a fold and a part of every grid, to see that the script works; its ratios mean little.
Paper 3 has a script of its own, benchmarks/sparse_paper.py. What the figures mean is in
docs/understand/papers.md.
"""

import argparse
import json
import os
import time
from pathlib import Path

from paper_sections.convergence import convergence
from paper_sections.counting import adjacent, counting
from paper_sections.data_sets import data_sets
from paper_sections.pointwise import accuracy, selection, trees
from paper_sections.programs import ProgramError, programs
from paper_sections.prsvm import auc, losses
from paper_sections.quality import quality
from paper_sections.sparse_clicks import sparse
from paper_sections.study import Study
from paper_sections.tree_rank_svm import growth

SECTIONS = {
    "data": data_sets,
    "selection": selection,
    "trees": trees,
    "convergence": convergence,
    "quality": quality,
    "counting": counting,
    "adjacent": adjacent,
    "sparse": sparse,
    "losses": losses,
    "auc": auc,
    "growth": growth,
    "programs": programs,
    "accuracy": accuracy,
}


def main() -> None:
    """Parse the command line and run the sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="one fold, small grids")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION",
                        default=list(SECTIONS), help=f"any of {', '.join(SECTIONS)}")  # fmt: skip
    parser.add_argument("--liblinear-ranksvm", help="train of LIBLINEAR-ranksvm, to compare with")
    parser.add_argument("--svm-rank", help="svm_rank_learn of SVM^rank, to compare with")
    arguments = parser.parse_args()
    folder = os.environ.get("MARGINRANK_DATA")
    if not folder:
        parser.error("MARGINRANK_DATA must name the folder of MQ2008, OHSUMED and cadata.")
    study = Study(Path(folder), arguments.quick, arguments.liblinear_ranksvm, arguments.svm_rank)
    figures, failure = {}, None
    for name in arguments.only:
        start = time.perf_counter()
        try:
            figures[name] = SECTIONS[name](study)
        except ProgramError as error:
            failure = f"{name}: {error}"
        print(f"\n({name}: {time.perf_counter() - start:.1f} s)", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))
    if failure:
        raise SystemExit(failure)


if __name__ == "__main__":
    main()
