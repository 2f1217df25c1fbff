"""Benchmarks: the paper's experiments, speed, memory and scaling.

A plan gives jobs; each job runs in a process and appends one JSON line; tables show these records.
"""
