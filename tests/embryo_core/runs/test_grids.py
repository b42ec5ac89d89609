"""Grids of steps are dense at first and end at the last step."""

from embryo_core import runs


def test_the_step_grid_is_dense_where_function_words_are_learned():
    """Zero, powers of two below the spacing, then the regular grid and the last step."""
    assert runs.step_grid(100, 25) == (0, 1, 2, 4, 8, 16, 25, 50, 75, 100)
    assert runs.step_grid(10, 1000) == (0, 1, 2, 4, 8, 10)


def test_a_grid_of_more_steps_than_there_are_has_each_once():
    """However many are asked for: they are not counted through."""
    assert runs.log_grid(5, 10**18) == (1, 2, 3, 4, 5)
    assert runs.log_grid(0, 4) == ()
    assert runs.log_grid(8, 1) == (1, 2, 4, 8)
