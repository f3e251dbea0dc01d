"""Configuration of the documentation site: ``make docs``."""

import os
import tempfile

import sktransfer

# Examples must neither read nor write the archive of whoever builds the site.
os.environ["DASK_LOGGING__DISTRIBUTED"] = "warning"
os.environ["SKTRANSFER_ARCHIVE"] = tempfile.mkdtemp(prefix="sktransfer-docs-")

project = "sktransfer"
author = "the sktransfer developers"
copyright = author
release = version = sktransfer.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "results/runs", "**/*-notes.md"]  # notes are part of other pages
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"sktransfer {version}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["config.cache"]

autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": False}
autodoc_typehints = "none"
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "capture_repr": ("_repr_html_",),
    "min_reported_time": 1,
    "abort_on_example_error": True,
}


def skip_inherited_routing(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn generates: their text refers to its own site."""
    return True if name.startswith("set_") and name.endswith("_request") else skip


def setup(app):
    app.connect("autodoc-skip-member", skip_inherited_routing)
