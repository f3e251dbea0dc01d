"""Methods kept for comparison; the papers compare with them."""
