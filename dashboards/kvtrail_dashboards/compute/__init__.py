"""From answers to what is drawn: pure functions over frozen dataclasses; nothing here knows Streamlit or Altair."""
