"""The file that Streamlit runs, again at each choice of a reader.

It lies in a folder of its own: beside it, Streamlit would take the folder `pages` for scripts that it may run alone.
"""

from kvtrail_dashboards.app import run

run()
