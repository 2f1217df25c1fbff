"""Tables as rows of float32, fetched in batches, and the scale that they are learned in."""
