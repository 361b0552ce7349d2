"""What Streamlit is told to run; nothing imports it."""
