"""What is said, shown or noted in a library, by the words in it."""


def lines_with(store, terms, limit=10_000):
    """The lines that hold any of the terms, tags and notes first."""
    return list(store.read_lines(store.find_lines(terms, limit).ids).values())
