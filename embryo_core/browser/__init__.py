"""Components that run in the browser, for the dashboard and the static site: JavaScript, HTML, CSS, and their data."""
