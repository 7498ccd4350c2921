"""The model that comes with wordreel: pictures and words in one space of 512 dimensions."""
