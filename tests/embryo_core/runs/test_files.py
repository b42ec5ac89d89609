"""Files of a run are regular, inside its folder and of a bounded size, or they are refused before they are opened."""

import json

from embryo_core import runs


def test_json_is_replaced_whole(tmp_path):
    """A write leaves no temporary file and replaces what was there."""
    for content in ({"a": 1}, {"b": [2]}):
        runs.write_json(tmp_path / "new" / "card.json", content)
    assert json.loads((tmp_path / "new" / "card.json").read_text()) == {"b": [2]}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["card.json"]
