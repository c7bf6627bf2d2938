"""The page of ``turntrace view``: one HTML file that holds the report and everything that draws it."""
