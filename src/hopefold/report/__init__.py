"""Maps for people to look at: pages and pictures, from plain arrays."""
