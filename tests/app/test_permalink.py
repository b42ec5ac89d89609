"""Values of the URL."""

from app import permalink


def test_several_values_are_one_and_several_again() -> None:
    """Whatever they contain; a name without commas stays as it is."""
    names = ["a, b", "50 %", "%2C", "plain"]
    assert permalink.parts(permalink.joined(names)) == names
    assert permalink.joined(["plain", "other"]) == "plain,other"
