"""The problem that is trained, its solvers and their loop."""
