"""The pictures of docs/screens, made anew by `make screenshots`: real engines, the real app, real Chromium."""
