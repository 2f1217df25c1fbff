"""Many input files: one part per file, made here or on a Dask cluster."""
