"""The model that comes with wordreel: a small transformer over the experts, trained on captioned videos."""
