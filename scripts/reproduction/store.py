"""The rows of the tables: results/NAME.csv, one line per row as it was computed, and after the rows of several
seeds their mean. Every addition replaces the file whole."""
import csv
import dataclasses
import io
import os
import typing

from .runs import replace

MEAN = "mean"


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    keys: tuple  # columns that say which row it is, among them perhaps "seed"
    figures: dict  # further columns: digits after the point, or None for text
    experiments: typing.Callable  # of a list of seeds
    rows: typing.Callable  # of an experiment and its result, and of the base's: dictionaries of text
    models: typing.Callable  # of an experiment: the "model" of its rows here; () where it has none
    means: bool = True

    def columns(self):
        return [*self.keys, *self.figures]

    def form(self, row):
        """A row as text."""
        out = {key: str(row[key]) for key in self.keys}
        for name, digits in self.figures.items():
            value = row.get(name)
            missing = value is None or value == ""
            out[name] = "" if missing else str(value) if digits is None else f"{float(value):.{digits}f}"
        return out

    def key(self, row):
        return tuple(row[key] for key in self.keys)


def natural(text):
    """Numbers by value and before words, a mean last."""
    try:
        return (0, float(text), "")
    except ValueError:
        return (2 if text == MEAN else 1, 0.0, text)


class Results:
    def __init__(self, folder, tables):
        self.folder, self.tables = folder, tables

    def path(self, name):
        return f"{self.folder}/{name}.csv"

    def read(self, name, means=True):
        """Rows as dictionaries of text."""
        table = self.tables[name]
        try:
            with open(self.path(name), newline="") as file:
                reader = csv.DictReader(file)
                if reader.fieldnames != table.columns():
                    raise SystemExit(f"reproduce: {self.path(name)} has other columns than {table.columns()}")
                rows = list(reader)
        except FileNotFoundError:
            return []
        return [row for row in rows if means or row.get("seed") != MEAN]

    def has(self, name, **wanted):
        return any(all(row[key] == value for key, value in wanted.items()) for row in self.read(name, False))

    def add(self, name, rows, keep=False):
        """Adds rows that are not there yet; returns those as text. A row that is there with other figures is
        kept, or else is an error: remove it from the file first."""
        table, known = self.tables[name], self.read(name, False)
        there = {table.key(row): row for row in known}
        new = []
        for row in map(table.form, rows):
            old = there.setdefault(table.key(row), row)
            if old is row:
                new.append(row)
            elif old != row and not keep:
                raise SystemExit(f"reproduce: {self.path(name)} has {list(old.values())}, not {list(row.values())}: "
                                 "remove that row first")
        if new:
            self.write(name, known + new)
        return new

    def remove(self, name, **unwanted):
        rows = self.read(name, False)
        kept = [row for row in rows if any(row[key] != value for key, value in unwanted.items())]
        if len(kept) < len(rows):
            self.write(name, kept)

    def write(self, name, rows):
        table = self.tables[name]
        rows = sorted(rows, key=lambda row: [natural(row[key]) for key in table.keys])
        out = io.StringIO()
        writer = csv.DictWriter(out, table.columns(), lineterminator="\n")
        writer.writeheader()
        for row in with_means(table, rows):
            writer.writerow(row)
        os.makedirs(self.folder, exist_ok=True)
        replace(self.path(name), out.getvalue())


def with_means(table, rows):
    """After the rows that differ in their seed alone, their mean."""
    if not table.means or "seed" not in table.keys:
        return list(rows)
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in table.keys if key != "seed"), []).append(row)
    out = []
    for group in groups.values():
        mean = {**group[0], "seed": MEAN}
        for name, digits in table.figures.items():
            values = [row[name] for row in group]
            if digits is None:
                mean[name] = values[0] if len(set(values)) == 1 else ""
            elif "" in values:
                mean[name] = ""
            else:
                mean[name] = f"{sum(map(float, values)) / len(values):.{digits}f}"
        out += [*group, mean]
    return out
