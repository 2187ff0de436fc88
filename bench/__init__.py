"""Benchmarks: what taylorkern reaches, beside what others reach in the same run. See README.md in this folder."""
