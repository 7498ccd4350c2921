"""Long work that outlives a request, and a restart."""
