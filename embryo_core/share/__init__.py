"""Exports of attention and scores: a head's history as GIF or page, all heads as GIF, bertviz's views, tables."""

from embryo_core.share.bertviz import head_view, model_view
from embryo_core.share.gif import all_heads_gif, gif_bytes
from embryo_core.share.head_history import HeadHistory, averaged, read_averaged
from embryo_core.share.page import Animation, check_suffix, html_page
