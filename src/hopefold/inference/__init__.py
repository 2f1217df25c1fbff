"""Embedding of rows: in memory, from disk, and lazily with Dask."""
