"""Tools that know nothing of the other folders of this package."""
