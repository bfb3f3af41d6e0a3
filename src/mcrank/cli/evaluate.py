"""`mcrank evaluate`: measure scores, or a run, against grades."""

from __future__ import annotations

from typing import Any

import click

from mcrank.cli.cache import Unjudged, unjudged_option
from mcrank.cli.cluster import cluster_of, cluster_options
from mcrank.cli.columns import column_options
from mcrank.cli.echo import echo
from mcrank.cli.inputs import InputPath
from mcrank.cli.main import json_option, print_json
from mcrank.cli.options import MeasureName, jobs_option, prints_alone, rows_options
from mcrank.errors import MeasureError


@click.command()
@click.argument("data", type=InputPath(pattern=True))
@click.argument("scores", type=InputPath())
@click.option(
    "-m", "--measure", "measures", type=MeasureName(functions=True, alone=True), multiple=True,
    default=("ndcg@10",), show_default=True,
    help="A measure such as ndcg@10, map, ndcg@10[yahoo], or module:function; may be given again. Alone: "
    "all[trec], for what trec_eval prints, and rbo(0.9), for the overlap of two runs.",
)  # fmt: skip
@click.option("-q", "--per-query", is_flag=True, help="Also print the value of every query.")
@click.option("--band", is_flag=True, help="Also print each mean under the worst and the best order of ties.")
@click.option(
    "--calibration",
    is_flag=True,
    help="Also tell how right probabilities of grades are; SCORES is a model with probabilities, or what "
    "predict --proba wrote.",
)
@rows_options
@unjudged_option
@column_options
@cluster_options(training=False)
@jobs_option()
@json_option
def command(
    data: str,
    scores: str,
    measures: tuple[str, ...],
    per_query: bool,
    band: bool,
    calibration: bool,
    complete: bool,
    judged_only: bool,
    unjudged: Unjudged,
    cluster: str | None,
    workers: int | None,
    insecure_cluster: bool,
    n_jobs: int | None,
    as_json: bool,
) -> None:
    """Measure SCORES against the grades of DATA.

    DATA is LETOR text or a table with SCORES one number per line or a model; or TREC qrels with SCORES a
    run. One of them may be -, standard input.
    """
    from mcrank.metrics.measure import parse_measure

    for measure in measures:
        if prints_alone(measure):
            if len(measures) > 1 or band or calibration:
                raise MeasureError(
                    f"{measure} has a form of its own: ask for it alone, without --band and --calibration."
                )
            rows = {"complete": complete, "judged_only": judged_only}
            print_alone(measure, data, scores, per_query, rows, as_json, unjudged)
            return
    wanted = [parse_measure(measure) for measure in measures]
    place = cluster_of(cluster, workers, insecure_cluster)

    from mcrank.cli.files import model_scores, read_calibration, read_grades, read_scores_for, with_line
    from mcrank.cli.inputs import local_file
    from mcrank.experiments.foreign import is_model
    from mcrank.metrics.evaluate import evaluate

    scores = local_file(scores)
    found = read_calibration(scores, data, n_jobs, unjudged) if calibration else None
    if place is not None and (calibration or not is_model(scores)):
        raise click.UsageError(
            "--cluster and --workers are for SCORES that is a model, without --calibration."
        )
    if place is not None:
        file, (values, grades) = data, model_scores(scores, data, n_jobs, place, unjudged)
    else:
        documents = any(measure.tells_documents for measure in wanted)
        if found is None:
            file, grades = read_grades(data, documents, n_jobs, unjudged)
            values = read_scores_for(scores, grades, file, unjudged)
        else:
            file, grades, values = data, found.rows, found.scores
    options: dict[str, Any] = {
        "band": band,
        "complete": complete,
        "judged_only": judged_only,
        "n_jobs": n_jobs or -1,
    }
    result = with_line(file, lambda: evaluate(values, grades, wanted, **options), unjudged)
    if as_json:
        told = {} if found is None else {"calibration": found.calibration.to_dict()}
        print_json(result.to_dict(per_query=per_query) | told)
        return
    echo(str(result))
    if found is not None:
        echo(f"\n{found.calibration}")
    if per_query:
        echo("\n" + result.per_query_table())


def print_alone(
    measure: str,
    data: str,
    scores: str,
    per_query: bool,
    rows: dict[str, bool],
    as_json: bool,
    unjudged: Unjudged = "error",
) -> None:
    """Print what trec_eval prints of qrels and a run, or the overlap of two runs."""
    from mcrank.cli.files import read_grades, read_scores_for
    from mcrank.cli.inputs import local_file
    from mcrank.data.trec import Run
    from mcrank.metrics.overlap import overlap_name, rank_biased_overlap
    from mcrank.metrics.trec_eval import trec_report, trec_values

    p = overlap_name(measure)
    if p is None:
        file, grades = read_grades(data, True, unjudged=unjudged)
        run = read_scores_for(scores, grades, file)
        if as_json:
            print_json(trec_values(grades, run, measure, per_query=per_query, **rows))
        else:
            echo(trec_report(grades, run, measure, per_query=per_query, **rows))
        return
    overlap = rank_biased_overlap(Run.read(local_file(data)), Run.read(local_file(scores)), p)
    if as_json:
        print_json(overlap.to_dict(per_query))
        return
    echo(str(overlap))
    if per_query:
        echo("\n" + "\n".join(f"{query}\t{value:.6f}" for query, value in overlap.per_query.items()))
