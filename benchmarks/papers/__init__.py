"""Experiments of the papers, one file each: ``python -m benchmarks.papers NAME``."""
