"""A static site that shows runs without a server: the dashboard's figures as a folder of files."""

from embryo_core.site.site import write_site
