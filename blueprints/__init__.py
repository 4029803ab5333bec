"""How the browser, the API client and the operator ask. Each edge checks, calls one verb, renders."""
