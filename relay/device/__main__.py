"""`python -m relay.device`."""

from relay.device.command import device

if __name__ == "__main__":
    device(prog_name="python -m relay.device")
