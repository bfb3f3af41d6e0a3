"""What the documents of a query are called."""

from __future__ import annotations

from collections import Counter

from mcrank.data.dataset import Dataset


def document_names(rows: Dataset) -> list[str]:
    """Return a name for each row of a query: its id where no other has the same, and else its number too.

    Examples
    --------
    >>> from mcrank import Dataset
    >>> from mcrank.data.documents import document_names
    >>> document_names(Dataset([[0.0]] * 4, y=[0] * 4, qid=[1] * 4, doc_ids=["D1", "D2", "D2", ""]))
    ['D1', 'D2 (row 2)', 'D2 (row 3)', 'row 4']
    """
    ids = [""] * rows.n_rows if rows.doc_ids is None else [str(one) for one in rows.doc_ids.tolist()]
    count = Counter(ids)
    called = [f"{name} (row {number})" if name else f"row {number}" for number, name in enumerate(ids, 1)]
    return [name if name and count[name] == 1 else full for name, full in zip(ids, called, strict=True)]
