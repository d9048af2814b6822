"""Configuration of the site: `python3 dev.py docs` builds it into build/site, without network."""

import re
import sys
import warnings
from pathlib import Path

from marginrank import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "marginrank"
author = copyright = "The marginrank developers"
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_pages",
    "linked_names",
    "mathml",
]
exclude_patterns = ["_ext", "_static", "_templates", "gallery/*.py", "gallery/*.ipynb"]
# Pages of earlier builds whose example was renamed since then.
exclude_patterns += [
    f"gallery/{page.name}"
    for page in (DOCS / "gallery").glob("plot_*.rst")
    if not (DOCS.parent / "examples" / f"{page.stem}.py").exists()
]
templates_path = ["_templates"]
default_role = "literal"  # `name` in docstrings
smartquotes = False  # quotes in docstrings are code

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4  # as GitHub makes them
copybutton_prompt_text = "$ "
copybutton_copy_empty_lines = False
# JSON with "…" where something is left out is highlighted as far as it goes.
suppress_warnings = ["misc.highlighting_failure"]

# Reference
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types of the docstring
numpydoc_show_class_members = False  # the template lists methods and attributes
numpydoc_class_members_toctree = False

# Examples
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"/plot_",  # run these and show what they draw and print
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("marginrank",),
    "image_scrapers": ("matplotlib",),
    "abort_on_example_error": False,  # -W turns a failed example into an error at the end
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "plot_gallery": True,
}
warnings.filterwarnings("ignore", message=".*non-interactive.*")

# HTML
html_theme = "pydata_sphinx_theme"
html_title = f"marginrank {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def skip_members_of_scikit_learn(app, what, name, obj, skip, options):
    """Leave out what every estimator of scikit-learn has; its documentation describes that."""
    inherited = (getattr(obj, "__module__", None) or "").startswith("sklearn.")
    return skip or inherited or bool(re.fullmatch(r"set_\w+_request", name))


def setup(app):
    app.connect("autodoc-skip-member", skip_members_of_scikit_learn)
