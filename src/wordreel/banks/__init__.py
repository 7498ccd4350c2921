"""A library's query banks at work: embedded, fitted to its items, kept current, checked before use."""
