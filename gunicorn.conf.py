"""What gunicorn reads by itself where it serves the product: its lines become JSON, its workers patient."""

from typing import Any

from gunicorn.glogging import Logger

from tasks.logs import configure


class JsonLogger(Logger):  # type: ignore[misc]  # gunicorn ships no types
    """gunicorn's logger with our handler."""

    def setup(self, cfg: Any) -> None:
        """Called once in the master and in each worker."""
        super().setup(cfg)
        configure()


logger_class = JsonLogger
worker_class = "blueprints.patience.PatientWorker"
