"""Rows that C can trust: checked, counted, walked."""
