"""Components that run in a browser, for the dashboard and the static site: JavaScript, HTML, CSS, and their data."""
