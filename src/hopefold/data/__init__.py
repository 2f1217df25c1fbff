"""Reading tables, validating them, and fetching scaled rows in batches."""
