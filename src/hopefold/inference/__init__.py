"""Rows to points: in memory, from disk, and lazily for Dask."""
