"""Best-first growth of one tree: always split the leaf whose split gains most, until there are J leaves.

A whole tree is grown inside one kernel, by one thread or several. One leads, and gives out what takes time in
items that all of them claim (`mcrank.boosting.tickets`): chunks of rows where a node is divided and where the
smaller child is counted, parts of the features where both children are searched; of small nodes several at
once (`mcrank.boosting.drafts`).
Histograms are exact integers and equal gains go to the lower feature, so it does not matter who did what:
the tree is the same, to the last bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import int64, njit

from mcrank.arrays import IntArray
from mcrank.boosting.chunks import chunk_of, part_before
from mcrank.boosting.counting import Lot, chunks_for, count_chunk, count_whole, finish_chunks
from mcrank.boosting.drafts import begin_drafts, choose_drafts, draft, is_drafted, take_draft, undo_drafts
from mcrank.boosting.histogram import add_up, sum_root
from mcrank.boosting.limits import begin_children, begin_root, is_ruled
from mcrank.boosting.nodes import best_leaf, start_children, start_node, worth_searching
from mcrank.boosting.packing import fill_packs, pack_lanes, round_entries, round_rows
from mcrank.boosting.partition import (
    UNLISTED,
    count_left,
    fill_entries,
    list_small,
    number_children,
    place_node,
    place_root,
    renumber,
    rows_of_node,
    scatter,
)
from mcrank.boosting.rules import Rules
from mcrank.boosting.slim import is_slim, part_siblings, rules_of
from mcrank.boosting.split import best_split, fill_left_table, finish_split
from mcrank.boosting.tickets import (
    ABOUT,
    claim,
    give_out,
    is_over,
    join,
    say_done,
    say_over,
    threads_there,
    wait_a_little,
    wait_for,
)
from mcrank.boosting.wide import has_bits, is_wide, subtract_used
from mcrank.boosting.workspace import BinnedArrays, Scratch, TreeInput, Workspace
from mcrank.kernels import kernel, step
from mcrank.kernels.handed import handed, taken

# What the items on the board are about: their kind and number, the node and its smaller side (or -1), the
# larger one, whether items are parts of the features, whether these are counted already, and for how many
# threads rows are cut.
_KIND, _ITEMS, _NODE, _SMALL, _LARGE, _PARTS, _COUNTED, _THREADS = range(ABOUT, ABOUT + 8)
_BEGIN, _RENUMBER, _COUNT_LEFT, _SCATTER, _COUNT, _SEARCH, _DRAFT = range(7)
_CHUNK_ROWS = 8192  # of a partition: with fewer rows the calling of helpers would show


class Growing(NamedTuple):
    """A tree that grows, as one of its threads sees it: the scratch is its own, and its number ``me`` (0 for
    the leader).
    """

    binned: BinnedArrays
    rules: Rules
    tree: TreeInput
    ws: Workspace
    scratch: Scratch
    board: IntArray
    me: Any


@kernel()
def grow(binned, rules, tree, ws, scratch, board, threads):  # type: ignore[no-untyped-def]
    """Grow a tree, with whoever helps; return its number of nodes.

    ``threads`` is how many are expected; with 0 this one helps, until the tree is grown, and 0 is returned.
    """
    # IN: binned, rules, tree, threads  OUT: ws, scratch, board
    me = int64(0) if threads > 0 else join(board)
    if is_ruled(tree.limits):  # these look at lanes themselves
        none: Any = int64(0)
        rules = Rules(rules.num_leaves, rules.min_rows, rules.packing, none, rules.max_depth)
    g = handed(Growing(binned, rules, tree, ws, scratch, board, me))
    if threads > 0:
        n_nodes = _lead(g, threads)
        say_over(board)
        return n_nodes
    looks = 0
    while me < len(ws.started) and not is_over(board):
        looks = 0 if _work(g, me == 0) > 0 else wait_a_little(looks)
    return int64(0)


@step(shared=True, outer=True)
def _work(g, leads):  # type: ignore[no-untyped-def]
    """Do items as long as there are any; return how many."""
    done = 0
    item = claim(g.board, leads)
    while item >= 0:
        _do(g, item)
        item = claim(g.board, leads)
        if item < 0:
            _finish(g)  # before it says that the last of its own is done
        say_done(g.board)
        done += 1
    return done


@step(shared=True, outer=True)
def _do(g, item):  # type: ignore[no-untyped-def]
    """Do an item."""
    if g.board[_KIND] == _SEARCH:
        _search_item(g, item)
    elif g.board[_KIND] == _COUNT:
        count_chunk(g, _lot(g), item)
    elif g.board[_KIND] == _DRAFT:
        draft(g, item, _held(g))
    else:
        _chunk_item(g, item)


@njit(inline="always")
def _finish(g):  # type: ignore[no-untyped-def]
    """Do what is left after the last of a thread's items."""
    if g.board[_KIND] == _COUNT:
        finish_chunks(g, _lot(g))


@step(shared=True, outer=True)
def _share(g, kind, node, items):  # type: ignore[no-untyped-def]
    """Have items done, by this thread and whoever helps."""
    g.board[_KIND] = kind
    g.board[_NODE] = node
    g.board[_ITEMS] = items
    if give_out(g.board, items):
        own = _work(g, g.me == 0)
        uneven = kind == _COUNT
        wait_for(g.board, items, part_before(own, items, g.board[_THREADS] if uneven else items))
    else:
        for item in range(items):
            _do(g, item)
        _finish(g)


@njit(inline="always")
def _lead(g, threads):  # type: ignore[no-untyped-def]
    """Grow the tree."""
    nodes = g.ws.nodes
    n = len(g.tree.rows) if len(g.tree.rows) > 0 else len(g.tree.gradients)
    root = int64(0)  # typed: Numba would compile again for a literal's own type
    start_node(nodes, root, int64(0), int64(0), n, root)
    begin_root(g.tree.limits, g.tree.features)
    begin_drafts(g.ws.drafts, max(int64(1), int64(g.rules.num_leaves) - 1))
    place_root(g.ws.rows, g.tree.rows, n)
    if g.ws.rows.places[root, 0] != UNLISTED:
        _share(g, int64(_BEGIN), root, _chunks(g, n, threads))
    elif len(g.ws.rounded) > 0:
        _share(g, int64(_BEGIN), root, _chunks(g, len(g.tree.gradients), threads))
    _search(g, root, root, threads)
    n_nodes = int64(1)
    while n_nodes < 2 * g.rules.num_leaves - 1:
        at = best_leaf(nodes, n_nodes)
        if at < 0:
            break
        if threads_there(g.board, threads) > 1 and not is_drafted(g.ws.drafts, at):
            drafted = choose_drafts(g, at, n_nodes, _held(g))
            if drafted > 0:
                _share(g, int64(_DRAFT), at, drafted)
        if is_drafted(g.ws.drafts, at):
            n_nodes += 2
            take_draft(g.ws, at, n_nodes - 2, n_nodes == 2 * g.rules.num_leaves - 1)
            continue
        small = start_children(nodes, at, n_nodes)
        large = 2 * n_nodes + 1 - small
        worth = worth_searching(g.rules, n_nodes + 2, nodes[large])
        if worth:
            begin_children(g.tree.limits, g.tree.features, g.rules.packing, nodes[at])
        _divide(g, at, n_nodes, small if worth else int64(-1), threads)
        n_nodes += 2
        if worth:
            _search(g, small, large, threads)
    undo_drafts(g.ws, n_nodes)
    return n_nodes


@njit(inline="always")
def _chunks(g, n, threads):  # type: ignore[no-untyped-def]
    """Chunks into which ``n`` rows are cut: one for one thread, and for few rows."""
    if threads_there(g.board, threads) == 1:
        return int64(1)
    return max(int64(1), min(n // int64(_CHUNK_ROWS), len(g.ws.chunk_places)))


@njit(inline="always")
def _divide(g, at, left, small, threads):  # type: ignore[no-untyped-def]
    """Send the rows of leaf ``at`` to nodes ``left`` and the next; of wide bins, write out what those of
    ``small`` add.
    """
    ws, places = g.ws, g.ws.rows.places
    fill_left_table(taken(g.binned), ws.nodes[at], ws.left_table)
    g.board[_SMALL] = small
    if not list_small(ws.rows, at, ws.nodes[at].count, _held(g)):
        number_children(ws.rows, at, left)
        _share(g, int64(_RENUMBER), at, _chunks(g, len(g.tree.gradients), threads))
        return
    begin, end, room = places[at, 0], places[at, 1], places[at, 2]
    chunks = _chunks(g, end - begin, threads)
    to = ws.chunk_places
    if chunks == 1:
        to[0, 0], to[0, 1] = begin, room
        _scatter_chunk(g, at, int64(0), (begin, end))
        stay = to[0, 2]
        go = end - begin - stay
        place_node(places, left, (begin, begin + stay, room + go))
        place_node(places, left + 1, (room, room + go, begin + stay))
    else:
        _share(g, int64(_COUNT_LEFT), at, chunks)
        stay = int64(0)
        for i in range(chunks):
            stay += to[i, 2]
        to_left, to_right = room, room + stay
        for i in range(chunks):
            low, high = chunk_of(begin, end, i, chunks)
            to[i, 0], to[i, 1] = to_left, to_right
            to_left += to[i, 2]
            to_right += high - low - to[i, 2]
        place_node(places, left, (room, room + stay, begin))
        place_node(places, left + 1, (room + stay, room + end - begin, begin + stay))
        _share(g, int64(_SCATTER), at, chunks)
    if len(ws.packs) > 0 and small >= 0:
        fill_packs(
            ws.rows.entries, places[small, 0], places[small, 1], g.rules.packing, g.tree.weights, ws.packs
        )


@njit(inline="always")
def _held(g):  # type: ignore[no-untyped-def]
    """What entries of the rows hold."""
    return g.ws.rounded if len(g.ws.rounded) > 0 else g.tree.gradients


@step(shared=True, outer=True)
def _chunk_item(g, item):  # type: ignore[no-untyped-def]
    """A chunk of the rows of a node: what the root needs, or its share of a partition."""
    ws, packing = g.ws, g.rules.packing
    at, kind = g.board[_NODE], g.board[_KIND]
    node = rows_of_node(ws.rows, at)
    listed, entries = node[2] < 0, ws.rows.entries
    span = chunk_of(node[0], node[1], item, g.board[_ITEMS])
    f = ws.nodes[at].feature
    if kind == _BEGIN and listed:
        fill_entries(g.tree.gradients, g.tree.rows, span[0], span[1], entries)
        round_entries(entries, span[0], span[1], packing, g.tree.weights)
        if len(ws.packs) > 0:
            own = ws.packs[span[0] * pack_lanes(packing) :]
            fill_packs(entries, span[0], span[1], packing, g.tree.weights, own)
    elif kind == _BEGIN:
        round_rows(g.tree.gradients, span[0], span[1], packing, g.tree.weights, ws.rounded)
    elif kind == _RENUMBER:
        change = (ws.rows.places[at, 2], ws.rows.places[ws.nodes[at].right, 2])
        renumber(g.binned.columns[f], ws.left_table, ws.rows.numbers, span, change)
    elif kind == _SCATTER:
        _scatter_chunk(g, at, item, span)
    else:
        ws.chunk_places[item, 2] = _count_left(
            g.binned.wide_columns, g.binned.columns, f, ws.left_table, entries, span
        )


@step()
def _count_left(wide, columns, f, table, entries, span):  # type: ignore[no-untyped-def]
    """How many of the entries a split by feature ``f`` sends left, whatever the bits of its bins."""
    if wide is not None:  # noqa: SIM102 - types decide a test of its own
        if wide.shape[0] > 0:
            return count_left(wide[f], table, entries, span)
    return count_left(columns[f], table, entries, span)


@step(shared=True, outer=True)
def _scatter_chunk(g, at, item, span):  # type: ignore[no-untyped-def]
    """Send a chunk of the rows of leaf ``at`` to its sides; note how many went left."""
    ws = g.ws
    f = ws.nodes[at].feature
    to = (ws.chunk_places[item, 0], ws.chunk_places[item, 1])
    ws.chunk_places[item, 2] = _scatter(
        g.binned.wide_columns, g.binned.columns, f, ws.left_table, ws.rows.entries, span, to
    )


@step()
def _scatter(wide, columns, f, table, entries, span, to):  # type: ignore[no-untyped-def]
    """Send entries to the sides of a split by feature ``f``; return how many went left."""
    if wide is not None:  # noqa: SIM102 - types decide a test of its own
        if wide.shape[0] > 0:
            return scatter(wide[f], table, entries, span, to)
    return scatter(columns[f], table, entries, span, to)


@njit(inline="always")
def _search(g, small, large, threads):  # type: ignore[no-untyped-def]
    """Histograms and best splits of two new siblings (or of the root, when they are equal)."""
    ws, board = g.ws, g.board
    # A histogram that becomes slim is pressed from the front, by one thread.
    threads = int64(1) if is_slim(g.rules, ws.nodes[large]) else threads_there(board, threads)
    wide = is_wide(g.binned.wide_columns)
    board[_SMALL], board[_LARGE] = small, large
    board[_THREADS] = threads
    board[_PARTS] = threads > 1 or wide
    board[_COUNTED] = ws.nodes[small].slot < g.tree.ready
    if threads > 1 and not (wide or board[_COUNTED]):
        ws.started[:] = 0
        _share(g, int64(_COUNT), small, chunks_for(ws.nodes[small].count, threads))
    parts = int64(len(g.tree.parts) if board[_PARTS] else 1)
    _share(g, int64(_SEARCH), small, parts)
    for i in range(1 if small == large else 2):
        best = 0
        for part in range(1, parts):
            if ws.found[part, i].terms > ws.found[best, i].terms:  # of equals the lower features
                best = part
        child = small if i == 0 else large
        ws.nodes[child] = ws.found[best, i]
        packing = rules_of(g.rules, ws.nodes[child]).packing
        finish_split(ws.hists[ws.nodes[child].slot], taken(g.binned), packing, ws.nodes[child])


@njit(inline="always")
def _lot(g):  # type: ignore[no-untyped-def]
    """Chunks of the smaller side, those on the board or all rows as one."""
    chunks = g.board[_ITEMS] if g.board[_KIND] == _COUNT else int64(1)
    return Lot(g.board[_SMALL], chunks, g.board[_THREADS], _held(g))


@step(shared=True, outer=True)
def _search_item(g, item):  # type: ignore[no-untyped-def]
    """A part of the features: add up what threads have counted, or count it now, subtract the smaller sibling
    from what was the parent's, and search both.
    """
    ws, lanes = g.ws, g.rules.packing.lanes
    small, large = g.board[_SMALL], g.board[_LARGE]
    own_lanes = rules_of(g.rules, ws.nodes[small]).packing.lanes
    low, high, first, last = int64(0), len(g.binned.n_bins), int64(0), len(g.tree.features)
    if g.board[_PARTS]:
        part = g.tree.parts[item]
        low, high, first, last = part[0], part[1], part[2], part[3]
    hist = ws.hists[ws.nodes[small].slot]
    begin, end = g.binned.bin_start[low] * own_lanes, g.binned.bin_start[high] * own_lanes
    if not g.board[_COUNTED]:
        if g.board[_PARTS] and not is_wide(g.binned.wide_columns):
            add_up(hist, ws.partial_hists, ws.started, begin, end)
        else:
            count_whole(g, _lot(g), (low, high), hist)
    if small != large and has_bits(g.binned, hist, lanes):
        binned, larger = taken(g.binned), ws.hists[ws.nodes[large].slot]
        subtract_used(g.binned.wide_columns, binned, low, high, g.rules.packing, larger, hist)
    elif small != large:
        larger, bins = ws.hists[ws.nodes[large].slot], (g.binned.bin_start[low], g.binned.bin_start[high])
        part_siblings(g.rules, ws.nodes[small], ws.nodes[large], hist, larger, bins)
    for i in range(1 if small == large else 2):
        child = small if i == 0 else large
        found = ws.found[item, i]
        ws.found[item, i] = ws.nodes[child]
        own = ws.hists[ws.nodes[child].slot]
        if small == large:
            sum_root(g.binned, g.rules.packing, low, own, found)
        rules = rules_of(g.rules, ws.nodes[child])
        span = (first, last)
        limits, scratch = taken(g.tree.limits), taken(g.scratch)
        best_split(own, taken(g.binned), g.tree.features, span, rules, limits, scratch, found)
