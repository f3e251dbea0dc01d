"""Tools that do not depend on any other folder of the package."""
