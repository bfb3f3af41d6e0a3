"""The report: what a comparison shows, as a page, tables and figures."""
