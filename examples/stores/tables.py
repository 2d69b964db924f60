"""Medians with their spread, and tables of them."""

import statistics


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def over(own, others):
    """The spread of own figures over the least of the others, round by round; none without others."""
    rounds = [figure / min(beside) for figure, *beside in zip(own, *others)] if others else []
    return spread(rounds) if rounds else None


def shown(values, digits):
    if values is None:
        return "-"
    return f"{values['median']:.{digits}f} ({values['least']:.{digits}f}-{values['most']:.{digits}f})"


def aligned(rows):
    """The lines of a table."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
