"""Tracks as content-addressed files, in the library's folder or an object store."""
