"""The perceptual hash: equal for equal images, close for similar ones."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.browser.page.evidence import GRID, perceptual_hash
from tests.kinds.hash_distance import distance

# All in one draw: a thousand single ones for each example took most of the time.
LUMAS = st.binary(min_size=GRID * GRID, max_size=GRID * GRID).map(list)


def picture(seed=7):
    """A few dark boxes on white, as a page has them."""
    draw = random.Random(seed)
    lumas = [[255.0] * GRID for _ in range(GRID)]
    for _ in range(8):
        left, top = draw.randrange(GRID - 6), draw.randrange(GRID - 6)
        for y in range(top, top + draw.randrange(2, 6)):
            for x in range(left, left + draw.randrange(2, 6)):
                lumas[y][x] = 40.0
    return [luma for row in lumas for luma in row]


def test_the_hash_is_the_documented_one_on_every_machine():
    # From light on the left to dark: odd frequencies of the first row are positive, the rest 0.
    assert (
        perceptual_hash([float(-x) for _ in range(GRID) for x in range(GRID)]) == "5500000000000000"
    )
    assert perceptual_hash([128.0] * GRID * GRID) == "0" * 16


def test_a_small_change_moves_few_bits_and_another_picture_many():
    first = picture()
    changed = list(first)
    changed[5 * GRID + 5] = 40.0
    near = distance(perceptual_hash(first), perceptual_hash(changed))
    far = distance(perceptual_hash(first), perceptual_hash(picture(8)))
    assert near <= 8
    assert far >= 16


@given(LUMAS)
def test_it_is_64_bits_and_its_own_nearest(lumas):
    found = perceptual_hash(lumas)
    assert len(found) == 16
    assert found == perceptual_hash(tuple(lumas))
    assert distance(found, found) == 0


@given(LUMAS, st.floats(1, 60))
def test_brightness_alone_moves_few_bits(lumas, by):
    brighter = [luma + by for luma in lumas]
    assert distance(perceptual_hash(lumas), perceptual_hash(brighter)) <= 4


def test_another_grid_is_refused():
    with pytest.raises(ValueError, match="10 lumas"):
        perceptual_hash([1.0] * 10)
