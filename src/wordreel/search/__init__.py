"""Text, video, picture and sequence search over an embedded library."""
