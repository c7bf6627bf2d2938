"""Where the dashboards come from: make_dashboards.py writes their JSON."""
