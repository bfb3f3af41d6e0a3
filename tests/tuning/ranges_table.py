"""The table of ranges on docs/reference/ranges.md, from the declarations: run it to print the table anew."""

from __future__ import annotations

from mcrank.rankers.registry import RANKERS, ranker_class


def ranges_table() -> str:
    """One line for each option and range, with the rankers that have it so."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in RANKERS:
        for option in ranker_class(name).declared_options.values():
            if option.search is not None:
                found.setdefault((option.name, option.search.words), []).append(name)
    lines = ["| option | range | rankers |", "|---|---|---|"]
    for (option_name, words), rankers in sorted(found.items()):
        cell = words.replace("|", "\\|")
        lines.append(f"| `{option_name}` | {cell} | {', '.join(rankers)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(ranges_table())
