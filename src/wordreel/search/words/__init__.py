"""The words of a query: their terms, dates and languages, and where they are said, shown or matched."""
