"""RESULTS.md, its figures and its CSV files, from the results that there are."""

import csv
import re

from ..table import machine
from . import prose, sections
from .claims import claims
from .parts import PARTS

CLAIMS = "## What had to show"
TITLES = {
    "table1": "Table 1: the data sets",
    "figure1": "Figure 1: Adult, MNIST, TIMIT",
    "figure2": "Figure 2: Cov1",
    "table2": "Table 2: Gaussian, Taylor and polynomial kernel",
    "timit": "The TIMIT run",
    "theory": "Theory: bounds beside what was measured",
    "beyond": "Beyond the paper",
}


def write(results, sizes, folder):
    """The page of all parts whose results are there; returns the claims.

    Where results are missing, and the folder has a page of this size, that page keeps its head, its claims and the
    sections of those parts; sections that were made on another machine than the head names say so.
    """
    folder.mkdir(parents=True, exist_ok=True)
    parts = {part: results.all_of(list(jobs(sizes))) for part, jobs in PARTS.items()}
    judged = list(claims(parts))
    told = ", ".join(f"{key} {value}" for key, value in machine().items() if key != "load")
    page = folder / "RESULTS.md"
    head, kept = prose.HEAD.format(quick=" --quick" if sizes.quick else "", machine=told), {}
    text = [head, claims_table(judged)]
    if None in parts.values() and page.exists():
        before, *old = re.split(r"^(?=## )", page.read_text(), flags=re.MULTILINE)
        if before.partition(";")[0] == head.partition(";")[0]:  # the same command
            kept = {section.partition("\n")[0]: section for section in old}
            text = [before + kept[CLAIMS].rstrip() + "\n"]
    for part, records in parts.items():
        title = f"## {TITLES[part]}"
        if records is None:
            text.append(kept[title].rstrip() + "\n" if title in kept else f"{title}\n\nNot run at this size yet.\n")
            continue
        text.append(f"{title}\n")
        if told not in text[0]:
            text.append(prose.LATER.format(machine=told))
        save_csv(records, folder / f"{part}.csv")
        text.append(getattr(sections, part)(records, folder, sizes))
        text.append(f"All figures: [{part}.csv]({part}.csv).\n")
    page.write_text("\n".join(text))
    return judged


def save_csv(records, path):
    """One line for each result; numbers with six digits."""
    columns = list(dict.fromkeys(key for record in records for key in record))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow(
                {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in record.items()}
            )


def claims_table(judged):
    """What had to show, and whether it does."""
    lines = ["| claim | ours | beside | theirs | figure | target | met |", "|---|---|---|---|---|---|---|"]
    for row in judged:
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        peer = "" if row.peer is None else f"{row.peer:.4g}"
        figure = f"{row.figure:.3g}{row.figure_unit}"
        lines.append(f"| {row.work} | {row.ours:.4g} | {row.peer_name} | {peer} | {figure} | {row.target} | {met} |")
    return CLAIMS + "\n\n" + "\n".join(lines) + "\n"
