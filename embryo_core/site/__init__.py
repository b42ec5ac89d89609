"""A folder of static files that shows runs without a server: the dashboard's figures, opened from any web space."""

from embryo_core.site.site import write_site
