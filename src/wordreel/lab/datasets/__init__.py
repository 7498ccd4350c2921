"""Captioned collections, their splits and features, as people have them on disk."""
