"""`Once`: of an answer that is withdrawn and starts again, nothing stands there twice."""

from hypothesis import given
from hypothesis import strategies as st

from rxagent.cli.once import Once

pieces = st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=6)


def shown(attempts, *, failed=False):
    """What stands there: the answer, after what was marked as void."""
    written, voids = [], []

    def restart(void):
        assert "".join(written) == void
        voids.append(void)
        written.clear()

    once = Once(written.append, restart)
    for number, attempt in enumerate(attempts):
        if number:
            once.withdraw()
        for piece in attempt:
            once.piece(piece)
    once.end(failed=failed)
    return "".join(written), voids


@given(st.lists(pieces, min_size=1, max_size=4))
def test_the_last_attempt_stands_there_once(attempts):
    assert shown(attempts)[0] == "".join(attempts[-1])


@given(st.lists(pieces, min_size=1, max_size=4))
def test_nothing_is_marked_where_each_attempt_goes_on_from_the_last(attempts):
    growing = ["".join("".join(each) for each in attempts[: n + 1]) for n in range(len(attempts))]
    assert shown([[text] for text in growing]) == (growing[-1], [])


@given(st.lists(pieces, min_size=2, max_size=4))
def test_a_void_text_is_marked_only_where_the_answer_differs(attempts):
    _, voids = shown(attempts)
    earlier = ["".join(attempt) for attempt in attempts[:-1]]
    assert all(void in earlier for void in voids)
    assert not (voids and all("".join(attempts[-1]).startswith(text) for text in earlier))


def test_a_failed_attempt_that_says_less_leaves_what_stands_there():
    assert shown([["half an ", "answer"], ["half"]], failed=True) == ("half an answer", [])


def test_a_second_answer_begins_anew():
    written = []
    once = Once(written.append, lambda void: written.append("!"))
    for answer in ("one", "two"):
        once.piece(answer)
        once.end()
    assert written == ["one", "two"]
