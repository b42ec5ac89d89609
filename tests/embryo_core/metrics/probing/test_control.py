"""Labels of a control task belong to types, not to targets, and come as often as the labels of the task."""

import numpy as np

from embryo_core.metrics.probing.control import control_labels


def test_a_type_has_one_label_in_every_split():
    """Wherever "the bank" stands, its label is the same."""
    types = [["the bank", "a river", "the bank"], ["a river", "a new one"], ["the bank"]]
    train, dev, test = control_labels(types, np.array([0, 1, 2, 3]))
    assert train[0] == train[2] == test[0] and train[1] == dev[0]


def test_labels_come_as_often_as_in_training():
    """Among many types, the shares of labels are those of the training targets, and a label without any never comes."""
    (drawn,) = control_labels([[f"word {i}" for i in range(20_000)]], np.array([0, 0, 0, 2]))
    shares = np.bincount(drawn) / len(drawn)
    assert shares[1] == 0 and abs(shares[0] - 0.75) < 0.02


def test_labels_do_not_depend_on_the_order_of_targets():
    """They are drawn for the types in the order of the alphabet, and so are the same at every evaluation."""
    labels = np.array([0, 1, 2])
    one, other = control_labels([["a", "b", "c"]], labels), control_labels([["c", "b"], ["a", "a"]], labels)
    assert [*one[0]] == [other[1][0], other[0][1], other[0][0]]
