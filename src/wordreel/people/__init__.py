"""People of a library: faces grouped over all videos."""
