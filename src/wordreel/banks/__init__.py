"""Query banks of a library: built, embedded, fitted to its items, checked, and chosen for a search."""
