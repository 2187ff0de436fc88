"""svmlight text becomes exactly the rows that it says, from any kind of file; what is bad is named, with its place."""

import bz2
import gzip
import io
import lzma
import random
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from taylorkern import _svmlight, stream
from taylorkern.stream import iter_svmlight, read_svmlight

# The oracle: a slow and obvious reader.

MOST_COLUMNS = 2**31 - 2
NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
SPECIAL = re.compile(rb"[+-]?(nan|inf|infinity)", re.IGNORECASE)


class Bad(Exception):
    """What is wrong at a byte of a line, counted from 0."""

    def __init__(self, at, token, words):
        shown = token[:40] + (b"..." if len(token) > 40 else b"")
        super().__init__(at, words.format(seen=repr(shown)[1:]))


def number(token, at, what, dtype=np.float64, rest=None):
    """A finite number. `rest` is what stands there up to the next blank."""
    rest = token if rest is None else rest
    if not NUMBER.fullmatch(token):
        words = "{seen} is not finite" if SPECIAL.fullmatch(token) else f"the {what} {{seen}} is not a number"
        raise Bad(at, rest, words)
    with np.errstate(over="ignore"):
        x = dtype(float(token))
    if np.isinf(x):
        raise Bad(at, rest, "{seen} is too large")
    return x


class Oracle:
    """Reads text line by line and token by token."""

    def __init__(self, n_features=None, dtype=np.float64, zero_based="auto", multilabel=False):
        self.n_features, self.dtype, self.zero_based, self.multilabel = n_features, dtype, zero_based, multilabel
        self.rows, self.y, self.highest = [], [], -1

    def read(self, text):
        for i, line in enumerate(text.split(b"\n"), 1):
            try:
                self.line(line.split(b"#")[0])
            except Bad as bad:
                at, words = bad.args
                raise ValueError(f"<bytes>, line {i}, column {at + 1}: {words}") from bad
        first = {True: 0, False: 1}.get(self.zero_based, 1)
        n_columns = self.n_features or max(self.highest + 1 - first, 1)
        data = np.array([x for row in self.rows for _, x in row], dtype=self.dtype)
        indices = [j - first for row in self.rows for j, _ in row]
        indptr = np.cumsum([0, *map(len, self.rows)])
        X = sparse.csr_matrix((data, indices, indptr), shape=(len(self.rows), n_columns))
        return X, self.y if self.multilabel else np.array(self.y, dtype=np.float64)

    def line(self, line):
        tokens = [(m.start(), m.group()) for m in re.finditer(rb"\S+", line)]
        if not tokens:
            return
        if not self.multilabel:
            at, token = tokens.pop(0)
            self.y.append(number(token, at, "label"))
        elif b":" not in tokens[0][1]:
            at, token = tokens.pop(0)
            labels, begin = [], 0
            for part in token.split(b","):
                labels.append(number(part, at + begin, "label", rest=token[begin:]))
                begin += len(part) + 1
            self.y.append(tuple(sorted(labels)))
        else:
            self.y.append(())
        if tokens and tokens[0][1].startswith(b"qid:"):
            at, token = tokens.pop(0)
            if not re.fullmatch(rb"qid:[+-]?[0-9]+", token):
                raise Bad(at, token, "{seen} is not qid: and an integer")
        row = []
        for at, token in tokens:
            row.append(self.pair(at, token, row))
        self.rows.append(row)
        self.highest = max([self.highest, *(j for j, _ in row)])

    def pair(self, at, token, row):
        found = re.match(rb"([0-9]+):", token)
        if not found:
            negative = re.match(rb"-[0-9]+:", token)
            raise Bad(at, token, "the index of {seen} is negative" if negative else "{seen} is not index:value")
        index = int(found.group(1))
        n_columns = self.n_features or MOST_COLUMNS
        if index > n_columns - (self.zero_based is True):
            raise Bad(at, token, f"the index of {{seen}} is too high for {n_columns} columns")
        if row and index <= row[-1][0]:
            raise Bad(at, token, "the index of {seen} is not above the one before")
        if index == 0 and self.zero_based == "auto" and self.highest < n_columns:
            self.zero_based = True
        if index == 0 and self.zero_based is not True:
            raise Bad(at, token, "the index of {seen} is 0, but indices begin at 1 here")
        return index, number(token[found.end() :], at + found.end(), "value", self.dtype)


def outcome(call, *arguments, **options):
    """(what a call returns, None), or (None, the words with which it refuses)."""
    try:
        return call(*arguments, **options), None
    except ValueError as error:
        return None, str(error)


def refusal(call, *arguments, **options):
    return outcome(call, *arguments, **options)[1]


def check_like_oracle(text, **options):
    """Ours is the oracle's result, or its words. Returns whether it is a result."""
    expected, words = outcome(Oracle(**options).read, text)
    ours, our_words = outcome(read_svmlight, text, **options)
    assert our_words == words
    if words is None:
        assert_same(ours, expected)
    return words is None


def assert_same(ours, theirs):
    (X, y), (X2, y2) = ours, theirs
    assert X.shape == X2.shape
    assert X.dtype == X2.dtype and X.data.tobytes() == X2.data.tobytes()
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert np.array_equal(X.indices, X2.indices) and np.array_equal(X.indptr, X2.indptr)
    assert type(y) is type(y2)
    if isinstance(y, list):
        assert all(np.array(a).tobytes() == np.array(b).tobytes() for a, b in zip(y, y2, strict=True))
    else:
        assert y.dtype == np.float64 and y.tobytes() == y2.tobytes()


# Good files.

TEXT = b"""# a comment, then an empty line

+1 1:0.5 2:-3 5:1e-3
-1 qid:7 2:.5 7:4.   # more: of it, 3:4

  2.5\t3:1 \t 4:12345678901234567890.5\r
-0 1:-0 2:0 9:1.7976931348623157e308
7#
1e-400 12:2.2250738585072011e-308 30:0.1000000000000000055511151231257827"""

digits = st.text("0123456789", min_size=1, max_size=24)
reals = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e3, 1e3).map("{:.16g}".format),
    st.floats(-(2.0**99), 2.0**99, width=32).map("{:.18e}".format),
    st.integers(-9, 9).map(str),
    st.builds("{}{}.{}e{}".format, st.sampled_from(["", "+", "-"]), digits, digits, st.integers(-60, 30)),
    st.builds("{}{}".format, st.sampled_from(["", "+", "-"]), digits),
    st.builds(".{}".format, digits),
    st.builds("{}.".format, digits),
)
blanks = st.sampled_from([" ", " ", " ", "\t", "  ", " \t ", "\v", "\f"])


@st.composite
def lines(draw, multilabel=False, first_index=0):
    """A line of svmlight text."""
    labels = draw(st.lists(reals, min_size=0 if multilabel else 1, max_size=3 if multilabel else 1))
    indices = sorted(draw(st.sets(st.integers(first_index, draw(st.sampled_from([9, 1000, 2**31 - 3]))), max_size=6)))
    tokens = [",".join(labels)] if labels else []
    if draw(st.booleans()) and labels + indices:
        tokens.append(f"qid:{draw(st.integers(-5, 10**12))}")
    tokens += [f"{'0' * draw(st.integers(0, 2))}{j}:{draw(reals)}" for j in indices]
    line = "".join(token + draw(blanks) for token in tokens)
    end = draw(st.sampled_from(["", "", "\r", " ", "# 1:nan", "#\r"]))
    return draw(st.sampled_from(["", "", " "])) + (line if draw(st.booleans()) else line.rstrip()) + end


@st.composite
def files(draw, **options):
    """svmlight text, with empty lines and comments, and with or without a newline at the end."""
    some = st.one_of(lines(**options), lines(**options), lines(**options), st.sampled_from(["", " \t", "# nothing"]))
    return ("\n".join(draw(st.lists(some, max_size=8))) + draw(st.sampled_from(["", "\n"]))).encode()


def both(text, **options):
    return read_svmlight(text, **options), load_svmlight_file(io.BytesIO(text), **options)


@given(files(), st.sampled_from([None, 2**31 - 2]), st.sampled_from([True, "auto"]))
def test_rows_are_those_of_scikit_learn(text, n_features, zero_based):
    if n_features and zero_based == "auto":
        n_features -= 1
    assert_same(*both(text, n_features=n_features, zero_based=zero_based))


@given(files(first_index=1), st.sampled_from([False, "auto"]))
def test_one_based_rows_are_those_of_scikit_learn(text, zero_based):
    assert_same(*both(text, zero_based=zero_based))


@given(files(multilabel=True))
def test_rows_of_several_labels_are_those_of_scikit_learn(text):
    assert_same(*both(text, multilabel=True))


@given(files())
def test_float32_is_rounded_as_by_scikit_learn_or_refused(text):
    with np.errstate(over="ignore"):
        theirs = load_svmlight_file(io.BytesIO(text), dtype=np.float32)
    if np.isfinite(theirs[0].data).all():
        assert_same(read_svmlight(text, dtype=np.float32), theirs)
    else:
        with pytest.raises(ValueError, match="is too large"):
            read_svmlight(text, dtype=np.float32)


@given(files(multilabel=True), st.booleans())
def test_the_oracle_agrees(text, multilabel):
    if multilabel:
        assert_same(read_svmlight(text, multilabel=True), Oracle(multilabel=True).read(text))
    else:
        check_like_oracle(text)


def test_a_text_with_everything():
    assert_same(*both(TEXT))
    assert_same(read_svmlight(TEXT), Oracle().read(TEXT))
    X, y = read_svmlight(TEXT)
    assert X.shape == (6, 30) and y.tolist() == [1, -1, 2.5, 0, 7, 0]
    assert X.has_canonical_format


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing", b" \r\n\t\n"])
def test_no_rows(text):
    assert_same(*both(text))
    assert_same(*both(text, n_features=5, multilabel=True))


def test_what_scikit_learn_writes_is_read_back(tmp_path):
    rng = np.random.default_rng(0)
    X = sparse.random(200, 50, density=0.2, random_state=0, format="csr")
    X.data *= 10.0 ** rng.integers(-40, 40, X.nnz)
    dump_svmlight_file(X, rng.normal(size=200), str(tmp_path / "file"), zero_based=False)
    assert_same(read_svmlight(tmp_path / "file"), load_svmlight_file(str(tmp_path / "file")))


def hard_numbers():
    """Decimals that are near or at the middle of two doubles, and far from where 64 bits suffice."""
    chance = random.Random(0)
    for _ in range(3000):
        m, e = 2 * chance.getrandbits(53) + 1, chance.choice([0, 1, chance.randint(0, 300), -chance.randint(0, 300)])
        n = chance.choice([0, 0, 1, -1])
        text = str(m * 2**e + n) if e >= 0 else str(m * 5**-e * 10 ** chance.choice([0, 2]) + n) + f"e{e}"
        yield text
        yield text.split("e")[0][: chance.randint(16, 24)] + f"e{chance.randint(-200, 100)}"
        yield f"{chance.getrandbits(64)}e{chance.randint(-420, 280)}"


def test_every_number_is_that_of_float():
    texts = list(hard_numbers())
    numbers = np.array([float(text) for text in texts])
    X, y = read_svmlight("".join(f"{text} 1:-{text}\n" for text in texts).encode())
    assert y.tobytes() == numbers.tobytes() and X.data.tobytes() == (-numbers).tobytes()


def test_indices_begin_where_they_are_said_to():
    text = b"1 1:1 3:1\n2 2:1\n"
    assert [read_svmlight(text, zero_based=z)[0].shape[1] for z in (True, False, "auto")] == [4, 3, 3]
    assert [read_svmlight(b"1 0:5\n" + text, zero_based=z)[0].shape[1] for z in (True, "auto")] == [4, 4]
    assert read_svmlight(text, n_features=9)[0].shape == (2, 9)


# Bad files.

HUGE = 2**31 - 1
ERRORS = [
    (b"x 1:1", 1, "the label 'x' is not a number"),
    (b"1:1 2:1", 1, "the label '1:1' is not a number"),
    (b" 0x10 2:1", 2, "the label '0x10' is not a number"),
    (b"1_0 2:1", 1, "the label '1_0' is not a number"),
    (b"1,2 2:1", 1, "the label '1,2' is not a number"),
    (b"+ 2:1", 1, "the label '+' is not a number"),
    (b". 2:1", 1, "the label '.' is not a number"),
    (b"1e 2:1", 1, "the label '1e' is not a number"),
    (b"\xef\xbb\xbf1 2:1", 1, r"the label '\xef\xbb\xbf1' is not a number"),
    (b"\x001 2:1", 1, r"the label '\x001' is not a number"),
    (b"nan 2:1", 1, "'nan' is not finite"),
    (b"-Inf 2:1", 1, "'-Inf' is not finite"),
    (b"1e400 2:1", 1, "'1e400' is too large"),
    (b"1 qid:x 1:1", 3, "'qid:x' is not qid: and an integer"),
    (b"1 1:1 qid:1", 7, "'qid:1' is not index:value"),
    (b"1 2", 3, "'2' is not index:value"),
    (b"1 2 3:1", 3, "'2' is not index:value"),
    (b"1 2 :3", 3, "'2' is not index:value"),
    (b"1 :3", 3, "':3' is not index:value"),
    (b"1 +2:3", 3, "'+2:3' is not index:value"),
    (b"1 1.0:3", 3, "'1.0:3' is not index:value"),
    (b"1 " + 50 * b"a", 3, f"'{40 * 'a'}...' is not index:value"),
    (b"1 1:1  -3:1", 8, "the index of '-3:1' is negative"),
    (b"1 1:1 3:1 3:1", 11, "the index of '3:1' is not above the one before"),
    (b"1 1:1 3:1 2:1#", 11, "the index of '2:1' is not above the one before"),
    (b"1 1:1 0:1", 7, "the index of '0:1' is not above the one before"),
    (f"1 {HUGE}:1".encode(), 3, f"the index of '{HUGE}:1' is too high for {2**31 - 2} columns"),
    (b"1 18446744073709551617:1", 3, f"the index of '18446744073709551617:1' is too high for {2**31 - 2} columns"),
    (b"1 1:", 5, "the value '' is not a number"),
    (b"1 1: 2", 5, "the value '' is not a number"),
    (b"1 1:#2", 5, "the value '' is not a number"),
    (b"1 1:2:3", 5, "the value '2:3' is not a number"),
    (b"1 1:2,3", 5, "the value '2,3' is not a number"),
    (b"1 1:0x1p3", 5, "the value '0x1p3' is not a number"),
    (b"1 1:1_0", 5, "the value '1_0' is not a number"),
    (b"1 1:1e+", 5, "the value '1e+' is not a number"),
    (b"1 1:--1", 5, "the value '--1' is not a number"),
    (b"1 1:nano", 5, "the value 'nano' is not a number"),
    (b"1 1:1\x00", 5, r"the value '1\x00' is not a number"),
    (b"1 1:NaN", 5, "'NaN' is not finite"),
    (b"1 1:1 2:+infinity#", 9, "'+infinity' is not finite"),
    (b"1 1:1 2:-1e309", 9, "'-1e309' is too large"),
    (b"1 1:1 2:1" + 400 * b"0", 9, f"'1{39 * '0'}...' is too large"),
]


@pytest.mark.parametrize(("line", "column", "words"), ERRORS)
def test_what_is_bad_is_named_with_its_place(line, column, words, tmp_path):
    path = tmp_path / "bad.svm"
    for before, after in ((b"", b""), (b"1 1:1e-300\n\n# 1:nan\r\n", b"\r\nx")):
        path.write_bytes(before + line + after)
        line_number = 1 + before.count(b"\n")
        assert refusal(read_svmlight, path) == f"{path}, line {line_number}, column {column}: {words}"
        check_like_oracle(before + line + after)


def test_columns_that_there_are_not():
    assert read_svmlight(b"1 3:1", n_features=3, zero_based=False)[0].indices.tolist() == [2]
    for text, options, words in (
        (b"1 4:1", {"zero_based": False}, "1, column 3: the index of '4:1' is too high for 3 columns"),
        (b"1 3:1", {"zero_based": True}, "1, column 3: the index of '3:1' is too high for 3 columns"),
        (b"1 0:1 3:1", {}, "1, column 7: the index of '3:1' is too high for 3 columns"),
        (b"1 0:1\n\n1 3:1", {}, "3, column 3: the index of '3:1' is too high for 3 columns"),
        (b"1 3:1\n 1 0:1", {}, "2, column 4: the index of '0:1' is 0, but indices begin at 1 here"),
        (b"1 0:1", {"zero_based": False}, "1, column 3: the index of '0:1' is 0, but indices begin at 1 here"),
    ):
        assert refusal(read_svmlight, text, n_features=3, **options) == f"<bytes>, line {words}"
        check_like_oracle(text, n_features=3, **options)


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        (b"1,,2 1:1", 3, "the label ',2' is not a number"),
        (b"1, 1:1", 3, "the label '' is not a number"),
        (b"3,2,x", 5, "the label 'x' is not a number"),
        (b"3,nan,2", 3, "'nan,2' is not finite"),
        (b"3,1e999", 3, "'1e999' is too large"),
        (b"3,4 1,2", 5, "'1,2' is not index:value"),
    ],
)
def test_bad_labels_of_several(line, column, words):
    assert refusal(read_svmlight, line, multilabel=True) == f"<bytes>, line 1, column {column}: {words}"
    check_like_oracle(line, multilabel=True)


def test_float32_has_an_end():
    end = float.fromhex("0x1.ffffffp127")  # from here on doubles are rounded to infinity
    below = float(np.nextafter(end, 0))
    assert read_svmlight(f"1 1:{-below!r}".encode(), dtype=np.float32)[0].data[0] == -np.finfo(np.float32).max
    for text in (repr(end), f"-{int(end)}", "1e100", "1e300"):
        with pytest.raises(ValueError, match="line 1, column 5: '.*' is too large"):
            read_svmlight(f"1 1:{text}".encode(), dtype=np.float32)
        assert read_svmlight(f"1 1:{text}".encode())[0].data[0] == float(text)


def mutate(text, chance):
    """Some bits flipped; some bytes deleted, put in, or put elsewhere."""
    text = bytearray(text)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        at = chance.randrange(len(text))
        end = at + chance.choice([1, 1, 2, 5, 30])
        kind = chance.randrange(5)
        if kind == 0:
            text[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del text[at:end]
        elif kind == 2:
            text[at:at] = bytes(chance.choices(b"0123456789.:eE+-,# \t\r\n\x00nafiqd_\xff", k=end - at))
        elif kind == 3:
            text[at:at] = chance.choice(SPICES)
        else:
            to = chance.randrange(len(text))
            text[to:to] = text[at:end]
        text = text or bytearray(b"1")
    return bytes(text)


SPICES = [
    b" 3:1", b"99999999999999999999", b"0000000000000000000000", b"1e308", b"e-310", b"nan", b"inf", b" -1:1", b"1,2 ",
    b" qid:3 ", b"4294967297:", b"\n1 0:1", b"\n\n", b"\r\n", b"9007199254740993", b".5e-1", b"3.5e38",
    b" 2147483646:1",
]  # fmt: skip


def test_20000_mutated_files_are_read_as_by_the_oracle_or_refused_with_its_words():
    chance = random.Random(0)
    good = 0
    for i in range(20_000):
        text = mutate(TEXT if i % 4 else b"1,2 1:1 3:.5\n2 1:2 qid:1\n 4:1e5 6:7\n", chance)
        good += check_like_oracle(
            text,
            multilabel=chance.random() < 0.3,
            dtype=chance.choice([np.float64, np.float32]),
            zero_based=chance.choice(["auto", "auto", True, False]),
            n_features=chance.choice([None, None, 30, 31]),
        )
    assert 1000 < good < 19_000  # there was something to read, and something to refuse


# Files of any kind.


def test_blocks_may_end_anywhere(monkeypatch, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(TEXT)
    bad = TEXT.replace(b"30:", b"30;")
    words = "<bytes>, line 9, column 35: '30;0.1000000000000000055511151231257827' is not index:value"
    for size in range(1, len(TEXT) + 2):
        monkeypatch.setattr(stream, "BLOCK", size)
        assert_same(read_svmlight(path), Oracle().read(TEXT))
        assert refusal(read_svmlight, bad) == words


class Dribble:
    """A file that gives a few bytes at a time."""

    def __init__(self, text):
        self.text = text

    def read(self, size):
        size = min(size, 1 + len(self.text) % 7)
        given, self.text = self.text[:size], self.text[size:]
        return given


def test_files_of_every_kind(tmp_path):
    expected = Oracle().read(TEXT)
    for ending, pack in (("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
        path = tmp_path / f"file{ending}"
        path.write_bytes(pack(TEXT))
        assert_same(read_svmlight(path), expected)
        assert_same(read_svmlight(str(path)), expected)
    with open(tmp_path / "file", "rb") as file:
        assert_same(read_svmlight(file), expected)
        assert not file.closed
    for text in (TEXT, bytearray(TEXT), memoryview(TEXT), io.BytesIO(TEXT), Dribble(TEXT)):
        assert_same(read_svmlight(text), expected)


def test_errors_name_the_file(tmp_path):
    for ending, pack in ((".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
        path = tmp_path / f"file{ending}"
        path.write_bytes(pack(b"1 1:1\nx"))
        with pytest.raises(ValueError, match=re.escape(f"{path}, line 2, column 1: the label 'x' is not a number")):
            read_svmlight(path)
        for spoilt in (pack(TEXT)[:-12], b"1 1:1\n"):
            path.write_bytes(spoilt)
            with pytest.raises(ValueError, match=re.escape(f"{path} cannot be unpacked")):
                read_svmlight(path)
    (tmp_path / "plain").write_bytes(b"x")
    with (
        open(tmp_path / "plain", "rb") as file,
        pytest.raises(ValueError, match=re.escape(f"{tmp_path / 'plain'}, line 1")),
    ):
        read_svmlight(file)
    with pytest.raises(ValueError, match="<file>, line 1"):
        read_svmlight(Dribble(b"x"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_svmlight(tmp_path / "nowhere")


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(TypeError, match="<file> gives str, not bytes: it has to be opened in binary mode"):
        read_svmlight(io.StringIO("1 1:1"))
    with pytest.raises(TypeError, match="file must be a path, a binary file or bytes; got int"):
        read_svmlight(5)
    with pytest.raises(TypeError, match="source must be a path, a binary file or a list of them; got int"):
        iter_svmlight(5)
    with pytest.raises(TypeError, match="<file> gives str, not bytes: it has to be opened in binary mode"):
        next(iter_svmlight(io.StringIO("1 1:1"), n_features=1, zero_based=False))
    with pytest.raises(FileNotFoundError, match="no file is named like '.*part-"):
        iter_svmlight(str(tmp_path / "part-*"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_features": 0}, "n_features must be an integer > 0; got 0"),
        ({"n_features": 2.0}, "n_features must be an integer > 0; got 2.0"),
        ({"n_features": 2**31}, f"n_features is {2**31}; at most {2**31 - 2} columns can be numbered"),
        ({"dtype": np.int64}, "dtype must be float64 or float32; got <class 'numpy.int64'>"),
        ({"zero_based": "yes"}, "zero_based must be True, False or 'auto'; got 'yes'"),
        ({"zero_based": 2}, "zero_based must be True, False or 'auto'; got 2"),
    ],
)
def test_bad_options(options, words):
    for call in (read_svmlight, iter_svmlight):
        assert refusal(call, "nowhere", **options) == words


def test_bad_batches():
    for options, words in (
        ({"batch_rows": 0}, "batch_rows must be an integer > 0; got 0"),
        ({"batch_bytes": 1.5}, "batch_bytes must be an integer > 0; got 1.5"),
        ({"batch_rows": 1, "batch_bytes": 1}, "give batch_rows or batch_bytes, not both"),
    ):
        with pytest.raises(ValueError, match=words):
            iter_svmlight("nowhere", **options)


# Batches.


def joined(batches):
    """(X, y) of all batches, whose numbers of columns have to be the same."""
    batches = list(batches)
    y = [y for _, y in batches]
    X = sparse.vstack([X for X, _ in batches], format="csr")
    return X, [labels for part in y for labels in part] if isinstance(y[0], list) else np.concatenate(y)


def random_text(seed, n_rows=300):
    chance = random.Random(seed)
    text = []
    for _ in range(n_rows):
        indices = sorted(chance.sample(range(1, 60), chance.randint(0, 12)))
        text.append(" ".join([str(chance.randint(-3, 3)), *(f"{j}:{chance.gauss(0, 1):.6g}" for j in indices)]))
    return "\n".join(text).encode()


@pytest.mark.parametrize("size", [{"batch_rows": 1}, {"batch_rows": 7}, {"batch_rows": 10**30}, {"batch_bytes": 1},
                                  {"batch_bytes": 2000}, {}])  # fmt: skip
@pytest.mark.parametrize("block", [50, 1000, 2**18])
def test_batches_are_the_rows_of_all_files(size, block, monkeypatch, tmp_path):
    monkeypatch.setattr(stream, "BLOCK", block)
    texts = [random_text(seed) for seed in range(3)]
    for i, text in enumerate(texts):
        (tmp_path / f"part-{i}.gz").write_bytes(gzip.compress(text))
        (tmp_path / f"part-{i}").write_bytes(text)
    plain = [tmp_path / f"part-{i}" for i in range(3)]
    expected = read_svmlight(b"\n".join(texts))
    for source in (plain, tuple(map(str, plain)), str(tmp_path / "part-*.gz"), [str(tmp_path / "part-?")]):
        assert_same(joined(iter_svmlight(source, **size)), expected)
    batches = list(iter_svmlight(plain, n_features=59, zero_based=False, dtype=np.float32, **size))
    assert_same(joined(batches), read_svmlight(b"\n".join(texts), dtype=np.float32))
    rows = [X.shape[0] for X, _ in batches]
    assert min(rows) > 0
    if "batch_rows" in size:
        assert set(rows[:-1]) <= {size["batch_rows"]} and rows[-1] <= size["batch_rows"]
    else:
        n_bytes = [16 * X.shape[0] + 8 * X.nnz for X, _ in batches]
        most = size.get("batch_bytes", stream.BATCH_BYTES)
        assert min([most, *n_bytes[:-1]]) == most and max(n_bytes) < most + 16 + 8 * 12


def test_batches_of_binary_files(tmp_path):
    texts = [random_text(seed) for seed in range(2)]
    expected = read_svmlight(b"\n".join(texts))
    known = {"n_features": expected[0].shape[1], "zero_based": False}
    (tmp_path / "part").write_bytes(texts[0])
    with open(tmp_path / "part", "rb") as file:
        for options in ({}, known):
            second = io.BytesIO(b"passed over\n" + texts[1])
            second.seek(12)  # files are read from where they stand, twice if need be
            file.seek(0)
            assert_same(joined(iter_svmlight([file, second], batch_rows=5, **options)), expected)
        assert not file.closed
    assert_same(joined(iter_svmlight([Dribble(text) for text in texts], batch_rows=5, **known)), expected)
    for unknown in ({}, {"n_features": 5}, {"zero_based": True}):
        with pytest.raises(
            ValueError, match="<file> can be read only once: give n_features, and zero_based as True or"
        ):
            next(iter_svmlight(Dribble(texts[0]), **unknown))


def test_batches_of_several_labels(tmp_path):
    (tmp_path / "file").write_bytes(b"2,1 1:1\n3\n 4:1\n5,6 2:3\n")
    assert_same(
        joined(iter_svmlight(tmp_path / "file", batch_rows=3, multilabel=True)),
        read_svmlight(tmp_path / "file", multilabel=True),
    )


def test_all_files_together_tell_where_indices_begin(tmp_path):
    (tmp_path / "a").write_bytes(b"1 1:1\n")
    (tmp_path / "b").write_bytes(b"1 0:1\n")
    paths = [tmp_path / "a", tmp_path / "b"]
    assert [X.indices.tolist() for X, _ in iter_svmlight(paths, batch_rows=1)] == [[1], [0]]
    assert [X.shape for X, _ in iter_svmlight(paths[:1])] == [(1, 1)]
    batches = iter_svmlight(paths, batch_rows=1, zero_based=False, n_features=3)
    assert next(batches)[0].indices.tolist() == [0]
    with pytest.raises(ValueError, match=re.escape(f"{paths[1]}, line 1, column 3: the index of '0:1' is 0")):
        next(batches)


def test_batches_go_on_to_the_bad_line(tmp_path):
    (tmp_path / "file").write_bytes(b"1 1:1\n2 1:1\n3 1:1\n4 x\n")
    batches = iter_svmlight(tmp_path / "file", batch_rows=1, n_features=1, zero_based=False)
    assert [next(batches)[1].tolist() for _ in range(3)] == [[1], [2], [3]]
    with pytest.raises(ValueError, match="line 4, column 3: 'x' is not index:value"):
        next(batches)


def test_no_rows_are_no_batches(tmp_path):
    (tmp_path / "file").write_bytes(b"\n# nothing\n")
    assert list(iter_svmlight(tmp_path / "file")) == []
    assert list(iter_svmlight([])) == []


def test_a_name_with_a_star_may_be_that_of_a_file(tmp_path):
    try:
        (tmp_path / "a[1]").write_bytes(b"1 1:1\n")
    except OSError:
        pytest.skip("this system has no such names")
    assert [y.tolist() for _, y in iter_svmlight(str(tmp_path / "a[1]"))] == [[1]]


def peak(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_that_of_the_result_or_of_a_batch(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(30 * (random_text(0, 5000) + b"\n"))  # 11 MB
    X, y = read_svmlight(path)
    size = X.data.nbytes + X.indices.nbytes + 2 * X.indptr.nbytes + y.nbytes
    assert size > 12e6 and peak(lambda: read_svmlight(path)) < 1.1 * size + 4e6

    def go_through():
        for _ in iter_svmlight(path, batch_bytes=2**20):
            pass

    assert peak(go_through) < 8e6


# The boundary.


def test_text_of_no_whole_lines_does_not_reach_c():
    reader = _svmlight.Svmlight(8, -1, 5, False, 0, 0, 1)
    for text in (b"", b"1 1:1"):
        with pytest.raises(ValueError, match="the text is not of whole lines"):
            reader.feed(text)
    assert reader.read() == (None, 1) and reader.n_rows == 0
