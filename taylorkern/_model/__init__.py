"""The estimators: what they share, their files, names and checks."""
