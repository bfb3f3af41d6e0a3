"""C code of heads: raw outputs become probabilities of grades and a score."""

from __future__ import annotations

from mcrank.export.parts import Part
from mcrank.scorers.odds import LEAST_SHARE, Odds

SIGMOID = """
static double sigmoid(double v)
{
    const double e = exp(-fabs(v));
    return (v >= 0.0 ? 1.0 : e) / (1.0 + e);
}
"""
SOFTMAX = """
static void softmax(const double *raw, int n, double *p)
{
    double top = raw[0], total = 0.0;
    int k;
    for (k = 1; k < n; k++) top = raw[k] > top ? raw[k] : top;
    for (k = 0; k < n; k++) total += p[k] = exp(raw[k] - top);
    for (k = 0; k < n; k++) p[k] /= total;
}
"""
# Isotonic regression by the min-max formula, and steps, as in mcrank: boundaries learned apart may cross.
FALLING = """
static void falling(double *v, int n)
{
    double sums[@GRADES@], made[@GRADES@], before = 1.0;
    int i, j, k;
    sums[0] = 0.0;
    for (k = 0; k < n; k++) sums[k + 1] = sums[k] + v[k];
    for (k = 0; k < n; k++) {
        double least = 1.0, after = 0.0, most_left = 1.0;
        for (j = k; j < n; j++) after = v[j] > after ? v[j] : after;
        for (i = 0; i <= k; i++) {
            double most = 0.0;
            for (j = k; j < n; j++) {
                const double mean = (sums[j + 1] - sums[i]) / (j + 1 - i);
                most = mean > most ? mean : most;
            }
            least = most < least ? most : least;
        }
        if (k > 0) most_left = (before < after ? @STEP@ : 1.0) * made[k - 1];
        made[k] = most_left < least ? most_left : least;
        before = v[k] < before ? v[k] : before;
    }
    for (k = 0; k < n; k++) v[k] = made[k];
}
"""
# Of three and more grades: probabilities of each.
_CLASSES = {
    "softmax": "    softmax(raw, @K@, p);\n",
    "one-each": """    double logs[@K@];
    int k;
    for (k = 0; k < @K@; k++) logs[k] = raw[k] < 0.0 ? raw[k] - log1p(exp(raw[k])) : -log1p(exp(-raw[k]));
    softmax(logs, @K@, p);
""",
    "base-pairs": """    double sums[@K@];
    int j, k;
    for (k = 0; k < @K@; k++) {
        sums[k] = 0.0;
        for (j = 0; j < @K@ - 1; j++) sums[k] += raw[k * (@K@ - 1) + j];
    }
    for (k = 0; k < @K@; k++)
        for (j = 0; j < @K@ - 1; j++) sums[j + (j >= k)] -= raw[k * (@K@ - 1) + j];
    softmax(sums, @K@, p);
""",
}
# Chances of being above each grade but the highest.
_SIGMOIDS = "    int k;\n    for (k = 0; k < @K@ - 1; k++) above[k] = sigmoid(raw[k]);\n"
_SUMS = """    double p[@K@];
    int k;
    learned_@I@(raw, p);
    above[@K@ - 2] = p[@K@ - 1];
    for (k = @K@ - 3; k >= 0; k--) above[k] = above[k + 1] + p[k + 1];
"""
_BETWEEN = """    double above[@K@];
    int k;
    above_@I@(raw, above);
@REPAIR@    p[0] = 1.0 - above[0];
    for (k = 1; k < @K@ - 1; k++) p[k] = above[k - 1] - above[k];
    p[@K@ - 1] = above[@K@ - 2];
"""
# Of rows with odds of grades at a score: how likely they were to be above each grade, and what was learned,
# each by its share.
_BY_SCORE = """    static const double steps[] = {@STEPS@};
    static const double cuts[] = {@CUTS@};
    static const double strayed[] = {@STRAYED@};
    double share = 0.0, odds, line;
    for (k = 0; k < @K@ - 1; k++) share += steps[k] * above[k];
    share = share < @SHARE@ ? @SHARE@ : share > 1.0 - @SHARE@ ? 1.0 - @SHARE@ : share;
    odds = log(share / (1.0 - share));
    line = @SLOPE@ * odds;
@BENDS@    for (k = 0; k < @K@ - 1; k++)
        above[k] = @LEARNED@ * above[k]
            + (1.0 - @LEARNED@) * ((1.0 - strayed[0]) * sigmoid(line + cuts[k]) + strayed[k + 1]);
"""
_EXPECTED = """
static double score_@I@(const double *raw)
{
    double above[@K@], score = relevance_@I@[0];
    int k;
    above_@I@(raw, above);
    for (k = 0; k < @K@ - 1; k++) score += (relevance_@I@[k + 1] - relevance_@I@[k]) * above[k];
    return score;
}
"""
_PLAIN = """
static double score_@I@(const double *raw)
{
    return @SCORE@;
}
"""


def head_code(number: int, part: Part, *, alone: bool) -> str:
    """Return functions ``score_<number>`` and, where they are needed, ``probability_<number>``."""
    kind = part.head.kind
    if part.values is None:
        # Cut off where it would be infinite, as mcrank does.
        largest = "exp(raw[0] < 709.78271289338397 ? raw[0] : 709.78271289338397)"
        return _filled(_PLAIN.replace("@SCORE@", largest if kind == "exp" else "raw[0]"), number, 1)
    worth = ", ".join(float(value).hex() for value in part.values.tolist())
    grades = len(part.values)
    code = f"\nstatic const double relevance_@I@[] = {{{worth}}};\n"
    odds = part.head.odds
    repair = ""
    if kind == "cumulative":
        chances = _SIGMOIDS
        repair = "    falling(above, @K@ - 1);\n" if odds is None and grades > 2 else ""
    else:
        chances = _SUMS
        code += _function("learned", "p", _CLASSES[kind])
    code += _function("above", "above", chances + ("" if odds is None else _by_score(odds))) + _EXPECTED
    if alone:
        learned = kind != "cumulative" and odds is None
        body = "    learned_@I@(raw, p);\n" if learned else _BETWEEN.replace("@REPAIR@", repair)
        code += _function("probability", "p", body)
    return _filled(code, number, grades)


def _function(name: str, out: str, body: str) -> str:
    return f"\nstatic void {name}_@I@(const double *raw, double *{out})\n{{\n{body}}}\n"


def _by_score(odds: Odds) -> str:
    """The code of odds, in braces: what it declares is its own."""
    code = _BY_SCORE.replace("@SLOPE@", float(odds.slopes[0]).hex()).replace("@SHARE@", LEAST_SHARE.hex())
    pairs = [
        (knot.hex(), bend.hex()) for knot, bend in zip(odds.knots.tolist(), odds.bends.tolist(), strict=True)
    ]
    bends = "".join(f"    if (odds > {knot}) line += {bend} * (odds - {knot});\n" for knot, bend in pairs)
    code = code.replace("@BENDS@", bends).replace("@LEARNED@", odds.learned.hex())
    for word, values in (("@STEPS@", odds.steps), ("@CUTS@", odds.cuts), ("@STRAYED@", odds.strayed)):
        code = code.replace(word, ", ".join(value.hex() for value in values.tolist()))
    return "    {\n" + "".join(f"    {line}\n" for line in code.splitlines()) + "    }\n"


def _filled(code: str, number: int, grades: int) -> str:
    return code.replace("@I@", str(number)).replace("@K@", str(grades))
