"""Read files that torch wrote, without running what is in them."""
