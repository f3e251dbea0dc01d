"""The papers' own experiments, one short file each: ``python -m benchmarks.papers NAME``."""
