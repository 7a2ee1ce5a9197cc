"""The grammar of conditions: what is printed is parsed again, and evaluation agrees with an oracle."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.conditions.durations import parse_ms, text_of_ms
from kgctl.conditions.errors import BadCondition
from kgctl.conditions.evaluation import Failure, Unknown, Value, failures, holds
from kgctl.conditions.parsing import parse
from kgctl.conditions.syntax import And, Comparison, Condition, Not, Or, references, text_of
from kgctl.conditions.variables import VARIABLES, Reference, Type, Variable

OPERATORS = ("==", "!=", "<", "<=", ">", ">=")
TOPICS = st.text("abz09._-' ", min_size=1, max_size=5) | st.sampled_from(["and", "not", "2024-orders", 'a"b'])


@st.composite
def comparisons(draw: st.DrawFn) -> Comparison:
    variable = draw(st.sampled_from(list(VARIABLES.values())))
    topic = draw(st.none() | TOPICS) if variable.has_topics else None
    if variable.type is Type.WORD:
        return Comparison(
            Reference(variable.name, topic), draw(st.sampled_from(OPERATORS[:2])), draw(st.sampled_from(variable.words))
        )
    number = draw(st.integers(0, 10**9))
    return Comparison(Reference(variable.name, topic), draw(st.sampled_from(OPERATORS)), number)


CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    comparisons(),
    lambda part: st.one_of(
        part.map(Not),
        st.lists(part, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(part, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=8,
)


@given(CONDITIONS)
def test_a_printed_condition_is_parsed_as_the_same_condition(condition: Condition) -> None:
    assert parse(text_of(condition)) == condition


@given(CONDITIONS)
def test_spaces_and_the_case_of_keywords_do_not_matter(condition: Condition) -> None:
    text = text_of(condition)
    if "'" in text or '"' in text or "and)" in text or "not)" in text:
        return
    spread = text.replace("(", " ( ").replace(")", "\t) ").replace(" and ", " AND\n").replace(" or ", "  Or ")
    assert parse(spread) == condition


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_an_error_with_a_column(text: str) -> None:
    error = None
    try:
        parse(text)
    except BadCondition as found:
        error = found
    if error is not None:
        assert 1 <= error.column <= len(text) + 1
        head, line, caret = str(error).split("\n")
        assert head.endswith(f"(column {error.column})")
        assert (caret.index("^"), len(line)) == (error.column + 1, len(text) + 2)


@given(st.integers(0, 10**13))
def test_durations_are_read_as_they_are_written(milliseconds: int) -> None:
    assert parse_ms(text_of_ms(milliseconds)) == milliseconds


# --- evaluation ---


def possible(variable: Variable) -> list[int | str]:
    return list(variable.words[:3]) if variable.words else [0, 1, 30_000]


def oracle(condition: Condition, values: dict[Reference, int | str]) -> bool:
    """Python's own operators on the text, for values that are all known."""
    match condition:
        case Comparison(reference, compare, value):
            return bool(eval(f"a {compare} b", {"a": values[reference], "b": value}))
        case Not(part):
            return not oracle(part, values)
        case And(parts):
            return all(oracle(part, values) for part in parts)
        case Or(parts):
            return any(oracle(part, values) for part in parts)


@st.composite
def evaluations(draw: st.DrawFn) -> tuple[Condition, dict[Reference, Value]]:
    condition = draw(CONDITIONS)
    values: dict[Reference, Value] = {}
    for one in dict.fromkeys(references(condition)):
        known = st.sampled_from(possible(VARIABLES[one.name]))
        values[one] = draw(known | st.just(Unknown("nobody said")))
    return condition, values


@given(evaluations())
def test_evaluation_agrees_with_an_oracle(case: tuple[Condition, dict[Reference, Value]]) -> None:
    condition, values = case
    unknown = [one for one, value in values.items() if isinstance(value, Unknown)]
    found = holds(condition, values)
    known = {one: value for one, value in values.items() if not isinstance(value, Unknown)}
    if not unknown:
        assert found is oracle(condition, known)
    elif found is not None:
        # Certain although something is not known: then no value of it changes the answer.
        for each in itertools.islice(itertools.product(*(possible(VARIABLES[one.name]) for one in unknown)), 30):
            assert oracle(condition, {**known, **dict(zip(unknown, each, strict=True))}) is found


@given(evaluations())
def test_a_condition_fails_exactly_if_a_part_of_it_does(case: tuple[Condition, dict[Reference, Value]]) -> None:
    condition, values = case
    found = failures(condition, values)
    assert (not found) is (holds(condition, values) is True)
    for failure in found:
        assert holds(failure.part, values) is not True
        # No conjunction: its parts fail one by one.
        assert not isinstance(failure.part, And)


def failed(text: str, **values: Value) -> list[str]:
    condition = parse(text)
    return [str(one) for one in failures(condition, {one: values[one.name] for one in references(condition)})]


def test_the_smallest_parts_that_fail_are_named_with_their_values() -> None:
    assert failed("state == Stable and lag < 100 and members >= 3", state="Stable", lag=250, members=2) == [
        "lag < 100 (lag is 250)",
        "members >= 3 (members is 2)",
    ]
    assert failed("not (lag < 5 or commit_age < 1m)", lag=1, commit_age=90_000) == ["not lag < 5 (lag is 1)"]
    assert failed("lag < 5 or state == Empty", lag=9, state="Stable") == [
        "lag < 5 or state == Empty (lag is 9, state is Stable)"
    ]
    assert failed("time_lag <= 30s", time_lag=5_400_000) == ["time_lag <= 30s (time_lag is 1h30m)"]


def test_a_value_that_is_not_known_meets_no_condition_not_even_a_negated_one() -> None:
    lag = Unknown("t-0 has no committed offset")
    expected = "(lag is not known: t-0 has no committed offset)"
    assert failed("lag < 5", lag=lag) == [f"lag < 5 {expected}"]
    assert failed("not lag < 5", lag=lag) == [f"not lag < 5 {expected}"]
    assert failed("lag < 5 or members == 0", lag=lag, members=0) == []


@pytest.mark.parametrize(
    ("text", "reason", "column"),
    [
        ("", "the condition is empty", 1),
        ("stat == Stable", "unknown variable 'stat'; known are assignment_epoch, ", 1),
        ("state == Stabel", "expected one of PreparingRebalance, ", 10),
        ("state < Stable", "state is a word: compare it with == or !=", 7),
        ("lag < 30s", "expected a number, not '30s'", 7),
        ("lag < -1", "expected a number, not '-1'", 7),
        ("commit_age < 30", "expected a duration such as 30s, not '30'", 14),
        ("lag = 3", "write ==", 5),
        ("lag < 3 && members > 1", "write and", 9),
        ("lag < 3 members > 1", "expected and, or, or the end, not 'members'", 9),
        ("(lag < 3", "no closing parenthesis for this", 1),
        ("lag < 3)", "no opening parenthesis for this", 8),
        ("lag(a b) < 3", "no closing parenthesis for this", 4),
        ("members(t) < 3", "members takes no topic", 8),
        ("lag < 3 and", "expected a variable: ", 12),
        ("state == 'Stable", "no closing '", 10),
        ("lag < __import__('os')", "expected a number, not '__import__'", 7),
        ("(" * 60 + "lag < 3" + ")" * 60, "more than 50 levels", 51),
        ("lag < 3 and " * 200 + "lag < 3", "the condition is longer than 2000 characters", 1),
    ],
)
def test_what_is_wrong_is_named_with_its_column(text: str, reason: str, column: int) -> None:
    with pytest.raises(BadCondition) as found:
        parse(text)
    assert (found.value.column, found.value.reason[: len(reason)]) == (column, reason)


def test_precedence_is_not_before_and_before_or() -> None:
    a, b, c = (Comparison(Reference("lag"), "<", number) for number in (1, 2, 3))
    assert parse("lag<1 or lag<2 and lag<3") == Or((a, And((b, c))))
    assert parse("not lag<1 and lag<2") == And((Not(a), b))
    assert parse("not (lag<1 and lag<2)") == Not(And((a, b)))


def test_words_have_one_spelling_whatever_is_typed() -> None:
    assert text_of(parse("verdict != never_committed and state == stable")) == (
        "verdict != 'NEVER COMMITTED' and state == Stable"
    )


def test_a_failure_is_a_part_with_its_values() -> None:
    condition = parse("lag < 1")
    assert failures(condition, {Reference("lag"): 2}) == (Failure(condition, ((Reference("lag"), 2),)),)
