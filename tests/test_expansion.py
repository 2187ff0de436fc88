"""Slots and monomials: exact integers in both directions."""

import pickle
from math import comb, inf, nan

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from taylorkern._data.expansion import Expansion, resolve_gamma
from taylorkern.features import _multisets


def make(n_columns, degree):
    return Expansion(n_columns, degree=degree, gamma=1.0)


def columns_for(n_slots, degree):
    """The fewest columns with more than n_slots monomials."""
    low, high = 0, 2**31
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if comb(middle + degree, degree) > n_slots else (middle + 1, high)
    return low


@pytest.mark.parametrize(("border", "degrees"), [(2**31, range(2, 12)), (2**53, range(2, 12)), (2**63, range(3, 13))])
def test_slot_of_and_powers_of_are_inverse_around_powers_of_two(border, degrees):
    """On either side of 2^31 and 2^53, and up to the last slot below 2^63: more than 10,000 cases altogether."""
    random = np.random.default_rng(border % 1000)
    for degree in degrees:
        d = columns_for(border + 500, degree)
        d = min(d, columns_for(2**63 - 1, degree) - 1)
        expansion = make(d, degree)
        top = min(border, expansion.n_slots)
        near = range(top - 150, min(top + 150, expansion.n_slots))
        far = (int(random.integers(expansion.n_slots)) for _ in range(350 - len(near)))
        for slot in [*near, *far]:
            powers = expansion.powers_of(slot)
            assert sum(powers.values()) <= degree
            assert list(powers) == sorted(powers)
            assert expansion.slot_of(powers) == slot
            coordinates = [j + 1 for j, e in powers.items() for _ in range(e)]
            assert reference.slot([0] * (degree - len(coordinates)) + coordinates) == slot


@given(st.data())
def test_powers_of_undoes_slot_of(data):
    degree = data.draw(st.integers(1, 20))
    d = data.draw(st.integers(1, min(columns_for(2**63 - 1, degree) - 1, 2**31 - 2)))
    chosen = data.draw(st.lists(st.integers(0, d - 1), max_size=degree))
    powers = {j: chosen.count(j) for j in sorted(set(chosen))}
    expansion = make(d, degree)
    slot = expansion.slot_of(powers)
    assert 0 <= slot < expansion.n_slots
    assert expansion.powers_of(slot) == powers
    if d < 1000:
        assert expansion.slot_of([powers.get(j, 0) for j in range(d)]) == slot


@given(st.data())
def test_slots_do_not_depend_on_d(data):
    degree = data.draw(st.integers(1, 6))
    d = data.draw(st.integers(1, 200))
    more = data.draw(st.integers(d, 1000))
    chosen = data.draw(st.lists(st.integers(0, d - 1), max_size=degree))
    powers = {j: chosen.count(j) for j in set(chosen)}
    assert make(d, degree).slot_of(powers) == make(more, degree).slot_of(powers)


@pytest.mark.parametrize(("d", "degree"), [(0, 3), (1, 1), (1, 170), (7, 1), (5, 4), (3, 9)])
def test_monomials_in_the_order_of_slots_number_from_zero(d, degree):
    expansion = make(d, degree)
    in_order = list(_multisets(degree, d))
    assert in_order == reference.multisets(range(1, d + 1), degree)
    assert len(in_order) == expansion.n_slots
    assert [expansion.slot_of(reference.powers(m)) for m in in_order] == list(range(expansion.n_slots))
    assert [expansion.powers_of(slot) for slot in range(expansion.n_slots)] == [reference.powers(m) for m in in_order]


@pytest.mark.parametrize(("d", "degree"), [(0, 1), (1, 5), (40, 3), (1000, 2), (400, 8)])
def test_ranks_are_binomials(d, degree):
    expected = [[comb(j + p - 1, p) if p else 1 for j in range(d + 2)] for p in range(degree + 1)]
    assert make(d, degree).ranks.tolist() == expected


def test_expansions_beyond_64_bits_are_refused_with_the_numbers():
    for degree in (3, 4, 8, 30):
        d = columns_for(2**63 - 1, degree)
        assert make(d - 1, degree).n_slots < 2**63
        n_slots = comb(d + degree, degree)
        with pytest.raises(ValueError, match=f"degree={degree} on {d} columns makes {n_slots} monomials.*{2**63 - 1}"):
            make(d, degree)


def test_the_refusal_names_a_degree_that_fits():
    with pytest.raises(ValueError, match="the largest degree that fits is 4"):
        make(100_000, 5)  # 100005! / (5! 100000!) is 8e22; with 4 it is 4e18
    assert make(100_000, 4).n_slots == comb(100_004, 4)


def test_more_columns_than_can_be_numbered_are_refused():
    with pytest.raises(ValueError, match=f"{2**31 - 1} columns"):
        make(2**31 - 1, 1)
    assert make(2**31 - 2, 1).n_slots == 2**31 - 1


@pytest.mark.parametrize(
    ("powers", "message"),
    [
        ({0: 2, 1: 2}, "add up to 4, more than the degree 3"),
        ([4, 0], "add up to 4"),
        ([1], "one entry for each of 2 columns; got 1"),
        ([1, 0, 0], "one entry for each of 2 columns; got 3"),
        ({2: 1}, "column 2 is not one of 0 to 1"),
        ({-1: 1}, "column -1"),
        ({0.5: 1}, "column 0.5"),
        ({"x0": 1}, "column 'x0'"),
        ({True: 1}, "column True"),
        ({0: -1}, "got -1"),
        ({0: 1.5}, "got 1.5"),
        ({0: True}, "got True"),
        ({0: 10**18}, "got 1000000000000000000"),
        ([0.5, 1], "got 0.5"),
    ],
)
def test_wrong_powers_are_refused(powers, message):
    with pytest.raises(ValueError, match=message):
        make(2, 3).slot_of(powers)


@pytest.mark.parametrize("slot", [-1, 10, 2**63, 2**64 + 1, 1.0, "1", None, True])
def test_wrong_slots_are_refused(slot):
    with pytest.raises(ValueError, match=f"slot.*{slot}"):
        make(2, 3).powers_of(slot)


def test_integers_of_numpy_are_integers():
    assert make(2, 3).slot_of({np.int8(0): np.uint16(1), np.int64(1): 2}) == 8
    assert make(2, 3).slot_of(np.array([1, 2])) == 8
    assert make(2, 3).powers_of(np.int32(8)) == {0: 1, 1: 2}
    assert Expansion(2, degree=np.int64(3), gamma=np.float32(0.5)).n_slots == 10


@pytest.mark.parametrize("degree", [0, -1, 171, 10**30, 2.5, 3.0, nan, True, "3", None, [3]])
def test_wrong_degrees_are_refused(degree):
    with pytest.raises(ValueError, match="degree must be an integer from 1 to 170; got"):
        make(2, degree)


@pytest.mark.parametrize("gamma", [0, 0.0, -1, nan, inf, -inf, None, True, 1j, [1.0], "foo"])
def test_wrong_gammas_are_refused(gamma):
    with pytest.raises(ValueError, match="gamma must be"):
        resolve_gamma(gamma, np.ones((2, 2)))
    with pytest.raises(ValueError, match="gamma must be"):
        Expansion(2, degree=2, gamma=gamma)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "polynomial", [1.0, 1.0, 1.0]])
@pytest.mark.parametrize("gamma", [1e-320, 1e308])
def test_extreme_gammas_keep_a_finite_scale(kernel, gamma):
    expansion = Expansion(2, degree=2, gamma=gamma, kernel=kernel)
    assert 0 < expansion.scale < inf


@pytest.mark.parametrize("coef0", [-1, -1e-9, nan, inf, None, "1", True])
def test_wrong_coef0_of_polynomials_is_refused(coef0):
    with pytest.raises(ValueError, match="coef0 must be a finite number >= 0; got"):
        Expansion(2, degree=2, gamma=1.0, kernel="polynomial", coef0=coef0)


@pytest.mark.parametrize(("coef0", "degree"), [(1e300, 3), (5.0, 170)])
def test_polynomials_whose_coefficients_overflow_are_refused(coef0, degree):
    with pytest.raises(ValueError, match="coef0"):
        Expansion(1, degree=degree, gamma=1.0, kernel="polynomial", coef0=coef0)


@pytest.mark.parametrize("kernel", ["sigmoid", "", None, 3, {1.0: 2}, True])
def test_unknown_kernels_are_refused(kernel):
    with pytest.raises(ValueError, match="kernel must be one of gaussian, .* rbf, poly or a sequence"):
        Expansion(2, degree=2, gamma=1.0, kernel=kernel)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ([1.0, 1.0], "takes 3 kernel coefficients; got 2"),
        ([1.0] * 4, "takes 3 kernel coefficients; got 4"),
        ([], "takes 3 kernel coefficients; got 0"),
        ([1.0, -0.5, 1.0], ">= 0; got -0.5 at position 1"),
        ([1.0, 1.0, nan], "got nan at position 2"),
        ([inf, 1.0, 1.0], "got inf at position 0"),
        ([1.0, "1", 1.0], "got '1' at position 1"),
        ([1.0, True, 1.0], "got True at position 1"),
        ([1.0, None, 1.0], "got None at position 1"),
    ],
)
def test_wrong_coefficients_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        Expansion(2, degree=2, gamma=1.0, kernel=kernel)


def test_coefficients_come_as_any_sequence():
    for kernel in ([1, 0, 2], (1.0, 0.0, 2.0), np.array([1.0, 0.0, 2.0]), np.array([1, 0, 2])):
        assert Expansion(2, degree=2, gamma=1.0, kernel=kernel).coefficients == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("name", reference.all_kernels(3))
def test_coefficients_scale_and_decay_are_those_of_the_formulas(name):
    kernel = reference.all_kernels(3)[name]
    expansion = Expansion(2, **kernel.parameters)
    assert np.allclose(expansion.coefficients, kernel.coefficients, rtol=1e-15, atol=0)
    assert expansion.scale == kernel.scale
    assert expansion.decay == (0.0 if kernel.unit else kernel.decay) and expansion.normalize == kernel.unit


def test_pickled_expansions_are_the_same():
    for kernel in ("gaussian", "polynomial", [1.0, 2.0, 3.0]):
        expansion = Expansion(4, degree=2, gamma=0.3, kernel=kernel, coef0=0.5)
        again = pickle.loads(pickle.dumps(expansion))
        assert (again.n_slots, again.gamma, again.kernel) == (expansion.n_slots, expansion.gamma, expansion.kernel)
        assert again.coefficients == expansion.coefficients
        assert again.features.n_slots == expansion.n_slots


def test_weights_are_for_the_gaussian_kernel():
    with pytest.raises(ValueError, match="for the Gaussian kernel"):
        Expansion(2, degree=2, gamma=1.0, kernel="exponential", weights=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match="must be finite numbers >= 0; got -1"):
        Expansion(2, degree=2, gamma=1.0, weights=(1.0, -1.0, 1.0))
