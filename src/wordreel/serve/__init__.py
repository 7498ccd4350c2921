"""The HTTP API and the page: `wordreel serve`."""
