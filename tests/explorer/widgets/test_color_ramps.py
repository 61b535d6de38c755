from __future__ import annotations

import numpy as np
import pytest
from rich.style import Style

from tui_transformer.explorer.widgets.palette import (
    FEW,
    LEVELS,
    Depth,
    Surface,
    palette,
    ramp,
    small_picture,
)
from tui_transformer.views.view import Scale, ScaleKind, contrast_ratio, luminance

DEPTHS: tuple[Depth, ...] = ("truecolor", "256", "standard")
KINDS: tuple[ScaleKind, ...] = ("sequential", "diverging")


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", DEPTHS)
def test_text_is_readable_on_ramps_that_are_monotone_or_have_a_neutral_middle(depth: Depth, dark: bool) -> None:
    surface = Surface(depth, dark)
    lightness = [luminance(color.get_truecolor()) for color in ramp("sequential", surface)]
    steps = np.diff(lightness)
    assert (steps > 0).all() if dark else (steps < 0).all()
    # the signed one: ends apart
    colors = [color.get_truecolor() for color in ramp("diverging", surface)]
    middle = colors[len(colors) // 2]
    assert len(colors) % 2 == 1
    assert max(middle) - min(middle) < 30
    assert colors[0].blue > colors[0].red
    assert colors[-1].red > colors[-1].blue
    for kind in KINDS:
        for style in palette(kind, surface, Style()).styles:
            assert style.color is not None
            assert style.bgcolor is not None
            assert contrast_ratio(style.color.get_truecolor(), style.bgcolor.get_truecolor()) >= 4.5


def test_without_colour_signed_glyphs_tell_minus_from_plus() -> None:
    colors = palette("diverging", Surface("none", dark=True), Style())
    assert not colors.has_color
    assert len(set(colors.glyphs)) == len(colors.glyphs)
    assert colors.glyphs[len(colors.glyphs) // 2] == "  "
    negative, positive = colors.glyphs[:4], colors.glyphs[5:]
    assert not set("".join(negative)) & set("".join(positive)) - {" "}


def test_masked_values_have_their_own_level() -> None:
    colors = palette("sequential", Surface("truecolor", dark=True), Style())
    levels = colors.levels(np.array([0.0, 1.0, 5.0, np.nan, -np.inf, np.inf]), Scale("sequential", 0.0, 1.0))
    top = len(colors.styles) - 1
    assert levels.tolist() == [0, top, top, colors.masked, colors.masked, top]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [*DEPTHS, "none"])
def test_no_value_that_is_not_nearly_zero_looks_like_zero(kind: ScaleKind, depth: Depth) -> None:
    scale = Scale(kind, -2.0 if kind == "diverging" else 0.0, 2.0)
    sizes = 2.0 * np.array([1, 1 / 2, 1 / 4, 1 / 8, 1 / 15])
    values = np.concatenate([sizes, -sizes]) if kind == "diverging" else sizes
    for levels in (65, LEVELS, FEW):
        colors = palette(kind, Surface(depth, dark=True), Style(), levels)
        zero = colors.levels(np.zeros(1), scale)[0]
        drawn = colors.levels(values, scale)
        assert (drawn != zero).all(), levels
        assert (np.sign(drawn - zero) == np.sign(values)).all(), levels
        looks = list(zip(colors.styles, colors.glyphs, strict=True))
        assert all(looks[level] != looks[zero] for level in drawn), levels


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [*DEPTHS, "none"])
def test_small_pictures_draw_half_of_the_largest_value_unlike_zero(kind: ScaleKind, depth: Depth) -> None:
    scale = Scale(kind, -1.0 if kind == "diverging" else 0.0, 1.0)
    [line] = small_picture(np.array([[0.0, 0.5, 0.125]]), scale, Surface(depth, dark=True), Style(bgcolor="black"), FEW)
    zero, half, eighth = ((segment.text, segment.style) for segment in line)
    assert zero not in (half, eighth)


@pytest.mark.filterwarnings("error")
def test_a_scale_wider_than_any_number_has_a_colour_for_every_value() -> None:
    colors, largest = palette("diverging", Surface("truecolor", dark=True), Style()), np.finfo(np.float64).max
    scale = Scale("diverging", -1.6e308, 1.6e308)
    levels = colors.levels(np.array([-largest, -0.8e308, 0.0, 0.8e308, largest, np.nan]), scale).tolist()
    assert levels == [0, 16, 32, 48, 64, colors.masked]
    assert Scale("sequential", -1.0, largest).position(np.array([-largest, largest])).tolist() == [0, 1]
