"""The experiments of Cotter, Keshet and Srebro (2011), run again: see bench/README.md."""
