"""Stress tests: real faults (kills, full disks, damaged files), made many times over."""
