"""Noise: published vectors, another implementation, and whatever else may come in (issue 6; FAULTS.md D64)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from noise.connection import Keypair, NoiseConnection

from relay.noise import (
    KEY,
    KKPSK0,
    MESSAGE_MAX,
    PATTERNS,
    REKEY_EVERY,
    TAG,
    XXPSK0,
    Broken,
    Handshake,
    Keys,
    Transport,
)

PSK = b"This is my Austrian perspective!"
PROLOGUE = b"John Galt"
INITIATOR = bytes.fromhex("e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1")
RESPONDER = bytes.fromhex("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893")
EPHEMERAL = bytes.fromhex("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a")
EPHEMERAL_BACK = bytes.fromhex("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b")
XXPSK3 = "Noise_XXpsk3_25519_ChaChaPoly_SHA256"  # of the published vectors that have a psk, the one nearest to ours

# From the vectors of cacophony (github.com/haskell-cryptography/cacophony, vectors/cacophony.txt), which many
# implementations share. The payloads are the same in each; the last of them is in Latin-1. Each tag is
# made over the hash of all that went before, so that the messages pin the hash too.
PAYLOADS = [
    b"Ludwig von Mises", b"Murray Rothbard", b"F. A. Hayek", b"Carl Menger", b"Jean-Baptiste Say",
    "Eugen B\u00f6hm von Bawerk".encode("latin-1"),
]  # fmt: skip
VECTORS = {
    KKPSK0: (
        "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c794423f19812300a6051f02195db0722909fc920796814cfc8"
        "86ab3a8083c66a5961",
        "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f14480884320acfe866b4ede922f007d89dbf507216d6aa8646c7fba"
        "098da374b1784d4b",
        "d213fdd768eeef05ee236c6d2983b2029bb472567a5831f4ff592c",
        "facf98016edcfc2566b16866935329b4da833dcd3bbb4173cf638e",
        "f46e7b19ebc94d697afc64b7f7d78d9b89276a6fbd438985d68c5d0261f4d4b774",
        "84119bc1a1a5f97a338c7affb30242cf3111e95c41a07d5e289b160015156a93cb70e8e73d",
    ),
    XXPSK3: (
        "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944c9f5ff0e8079630cb7e270c20bbf480821b77a384a645c"
        "71a2fd9b3db1c16a5f",
        "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843b123def17f71e6ae8e57e0e1dec5949c5f7415c6f33517"
        "398747d821a06dc23ad430aa1fd7381d46195c378a819fd574425462cbb2d4ca339e738a0b7001dc91423fbf55a99af0c6f1df21012ceb"
        "2f",
        "52187316111b118d4c060364f7b975dc0809b2590779aff2d63113c564f11744493384db7bf32d5ae6686df6ab06d508d2e07caaf1d6af"
        "c010b978735fc78900e71ae1d314130d042e729a",
        "eaedc672d4c21e0e2955758756fb98f194c4e90d5deb5b6cf30b27",
        "522d543c5fe799d09a3d9da7ff54d0dc03c8af1dc7751d2ff708339d2290943e98",
        "7d4e2c3873eef6a213b04e72f9df60a91666072d3544c5d96c34a09e2329b5030bee796741",
    ),
}


def public(private: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def side(
    name: str, *, initiator: bool, psk: bytes = PSK, prologue: bytes = PROLOGUE, remote: bytes = b""
) -> Handshake:
    static, ephemeral = (INITIATOR, EPHEMERAL) if initiator else (RESPONDER, EPHEMERAL_BACK)
    known = public(RESPONDER if initiator else INITIATOR) if name == KKPSK0 else b""
    keys = Keys(static, ephemeral, psk, remote or known)
    return Handshake(name, keys, initiator=initiator, prologue=prologue)


def shaken(name: str) -> tuple[Transport, Transport]:
    one, other = side(name, initiator=True), side(name, initiator=False)
    turn, waits = one, other
    while not turn.done:
        waits.read(turn.write())
        turn, waits = waits, turn
    return one.transport(), other.transport()


# -- it works -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(VECTORS))
def test_published_vectors_come_out_byte_for_byte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XXpsk0 has no published vectors: XXpsk3 shares its tokens, and another implementation tells the rest."""
    monkeypatch.setitem(PATTERNS, XXPSK3, (("e",), ("e", "ee", "s", "es"), ("s", "se", "psk")))
    messages = VECTORS[name]
    turn, waits = side(name, initiator=True), side(name, initiator=False)
    shaking = len(PATTERNS[name])
    for payload, message in zip(PAYLOADS[:shaking], messages, strict=False):
        assert turn.write(payload).hex() == message
        assert waits.read(bytes.fromhex(message)) == payload
        turn, waits = waits, turn
    here, there = turn.transport(), waits.transport()
    for payload, message in zip(PAYLOADS[shaking:], messages[shaking:], strict=True):
        assert here.seal(payload).hex() == message
        assert there.open(bytes.fromhex(message)) == payload
        here, there = there, here
    assert here.hash == there.hash


def other_implementation(name: str, *, initiator: bool) -> NoiseConnection:
    theirs = NoiseConnection.from_name(name.encode())
    theirs.set_as_initiator() if initiator else theirs.set_as_responder()
    theirs.set_psks(PSK)
    theirs.set_prologue(PROLOGUE)
    static, ephemeral = (INITIATOR, EPHEMERAL) if initiator else (RESPONDER, EPHEMERAL_BACK)
    theirs.set_keypair_from_private_bytes(Keypair.STATIC, static)
    theirs.set_keypair_from_private_bytes(Keypair.EPHEMERAL, ephemeral)
    if name == KKPSK0:
        theirs.set_keypair_from_public_bytes(
            Keypair.REMOTE_STATIC, public(RESPONDER if initiator else INITIATOR)
        )
    theirs.start_handshake()
    return theirs


@pytest.mark.filterwarnings("ignore:One of ephemeral keypairs")
@pytest.mark.parametrize("initiator", [True, False], ids=["initiator", "responder"])
@pytest.mark.parametrize("name", [XXPSK0, KKPSK0])
def test_another_implementation_speaks_with_ours(name: str, initiator: bool) -> None:
    ours, theirs = side(name, initiator=initiator), other_implementation(name, initiator=not initiator)
    twin = other_implementation(name, initiator=initiator)  # and says the very same in our place
    for number, payload in enumerate(PAYLOADS[: len(PATTERNS[name])]):
        if initiator == (number % 2 == 0):
            message = ours.write(payload)
            assert twin.write_message(payload) == message
            assert theirs.read_message(message) == payload
        else:
            message = bytes(theirs.write_message(payload))
            twin.read_message(message)
            assert ours.read(message) == payload
    transport = ours.transport()
    assert transport.hash == theirs.get_handshake_hash()
    for number in range(2 * REKEY_EVERY + 3):
        assert theirs.decrypt(transport.seal(b"there %d" % number)) == b"there %d" % number
        assert transport.open(theirs.encrypt(b"back %d" % number)) == b"back %d" % number
        if (number + 1) % REKEY_EVERY == 0:
            theirs.rekey_inbound_cipher()
            theirs.rekey_outbound_cipher()


def test_both_sides_export_the_same_secrets_one_for_each_label() -> None:
    here, there = shaken(XXPSK0)
    assert here.export(b"one") == there.export(b"one")
    assert len({here.export(b"one"), here.export(b"two"), here.hash, PSK}) == 4
    assert len(here.export(b"one")) == KEY


def test_the_initiators_key_comes_with_xx_and_is_the_one_that_kk_wants() -> None:
    one, other = side(XXPSK0, initiator=True), side(XXPSK0, initiator=False)
    assert one.remote == b""
    other.read(one.write())
    one.read(other.write())
    other.read(one.write())
    assert (one.remote, other.remote) == (public(RESPONDER), public(INITIATOR))


@pytest.mark.parametrize("size", [0, 1, 64_999, 65_000, 65_001, MESSAGE_MAX - TAG])
def test_d64_a_message_of_any_size_that_fits_comes_back(size: int) -> None:
    here, there = shaken(KKPSK0)
    assert there.open(here.seal(bytes(size))) == bytes(size)


@pytest.mark.parametrize("size", [65_520, 65_535, 70_000])
def test_d64_a_message_that_does_not_fit_is_never_sealed(size: int) -> None:
    here, there = shaken(KKPSK0)
    with pytest.raises(ValueError, match="more than a message holds"):
        here.seal(bytes(size))
    assert there.open(here.seal(b"the session goes on")) == b"the session goes on"


def test_keys_change_and_the_last_one_cannot_be_told_from_the_next() -> None:
    """Two sides that renew at other counts do not understand each other: both must keep count."""
    here, there = shaken(KKPSK0)
    sealed = [here.seal(b"same") for _ in range(REKEY_EVERY + 1)]
    assert [there.open(one) for one in sealed] == [b"same"] * (REKEY_EVERY + 1)
    lagging, behind = shaken(KKPSK0)
    for one in sealed[:REKEY_EVERY]:
        behind.open(one)
    behind._receives._nonce = 0
    with pytest.raises(Broken):
        behind.open(lagging.seal(b"same"))


# -- it does not ---------------------------------------------------------------------------------------------


def outcome(one: Handshake, other: Handshake) -> str:
    turn, waits = one, other
    try:
        while not turn.done:
            waits.read(turn.write())
            turn, waits = waits, turn
    except Broken:
        return "broken"
    return "done"


@pytest.mark.parametrize("name", [XXPSK0, KKPSK0])
def test_another_key_or_prologue_ends_the_handshake(name: str) -> None:
    def run(**changes: bytes) -> str:
        return outcome(side(name, initiator=True), side(name, initiator=False, **changes))  # type: ignore[arg-type]

    assert run() == "done"
    assert run(psk=b"x" * 32) == run(prologue=b"John Gald") == run(prologue=b"") == "broken"


def test_a_stolen_psk_with_another_static_key_gets_nowhere() -> None:
    assert (
        outcome(side(KKPSK0, initiator=True), side(KKPSK0, initiator=False, remote=public(b"t" * 32)))
        == "broken"
    )
    assert (
        outcome(side(KKPSK0, initiator=True, remote=public(b"t" * 32)), side(KKPSK0, initiator=False))
        == "broken"
    )


def test_two_sides_of_one_role_and_a_reflected_message_are_refused() -> None:
    for name in (XXPSK0, KKPSK0):
        one = side(name, initiator=True)
        first = one.write()
        with pytest.raises(Broken):
            one.read(first)
        with pytest.raises(Broken, match="turn"):
            side(name, initiator=True).read(first)
        with pytest.raises(Broken, match="turn"):
            side(name, initiator=False).write()


def test_nothing_is_sealed_before_a_handshake_is_done() -> None:
    one = side(KKPSK0, initiator=True)
    one.write()
    with pytest.raises(Broken, match="not done"):
        one.transport()


def test_a_sealed_message_does_not_open_on_the_side_that_sealed_it() -> None:
    here, _ = shaken(KKPSK0)
    with pytest.raises(Broken):
        here.open(here.seal(b"back to you"))


def opened_or_broken(there: Transport, message: bytes) -> None:
    with suppress(Broken):
        there.open(message)


@pytest.mark.parametrize(
    "order", [[0, 0], [1], [1, 0], [0, 2]], ids=["replayed", "first lost", "swapped", "one lost"]
)
def test_replayed_reordered_and_lost_messages_end_the_session(order: list[int]) -> None:
    here, there = shaken(KKPSK0)
    sealed = [here.seal(b"%d" % number) for number in range(3)]
    for number in order[:-1]:
        opened_or_broken(there, sealed[number])
    with pytest.raises(Broken):
        there.open(sealed[order[-1]])
    with pytest.raises(Broken, match="over"):
        there.open(sealed[0])
    with pytest.raises(Broken, match="over"):
        there.seal(b"still there?")


def test_messages_of_another_session_of_the_same_keys_are_refused() -> None:
    here, _ = shaken(KKPSK0)
    keys = Keys(RESPONDER, b"e" * 32, PSK, public(INITIATOR))
    one = side(KKPSK0, initiator=True)
    other = Handshake(KKPSK0, keys, initiator=False, prologue=PROLOGUE)
    other.read(one.write())
    one.read(other.write())
    with pytest.raises(Broken):
        other.transport().open(here.seal(b"of the first session"))


LOW_ORDER = [bytes(32), b"\x01" + bytes(31), bytes.fromhex("ecff" + "ff" * 29 + "7f"),
             bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")]  # fmt: skip


@pytest.mark.parametrize("key", LOW_ORDER)
def test_a_public_key_of_low_order_is_refused(key: bytes) -> None:
    with pytest.raises(Broken, match="none"):
        side(KKPSK0, initiator=True, remote=key).write()
    one = side(XXPSK0, initiator=False)
    with pytest.raises(Broken):
        one.read(key + bytes(TAG))


@pytest.mark.parametrize(
    "sizes", [(31, 32, 32, 32), (32, 33, 32, 32), (32, 32, 0, 32), (32, 32, 32, 31), (32, 32, 32, 0)]
)
def test_keys_of_another_length_are_our_own_fault(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="another length"):
        Handshake(KKPSK0, Keys(*(b"k" * size for size in sizes)), initiator=True, prologue=b"")


def every_message(name: str) -> Iterator[tuple[int, bytes]]:
    turn, waits = side(name, initiator=True), side(name, initiator=False)
    for number in range(len(PATTERNS[name])):
        message = turn.write(b"payload")
        yield number, message
        waits.read(message)
        turn, waits = waits, turn


@pytest.mark.parametrize("name", [XXPSK0, KKPSK0])
def test_a_changed_byte_anywhere_and_a_cut_anywhere_end_the_handshake(name: str) -> None:
    for number, message in every_message(name):
        for at in range(len(message)):
            changed = message[:at] + bytes((message[at] ^ 1,)) + message[at + 1 :]
            for bad in (changed, message[:at]):
                reader = reader_before(name, number)
                with pytest.raises(Broken):
                    reader.read(bad)
        for more in (message + b"\0", message + bytes(MESSAGE_MAX)):
            with pytest.raises(Broken):
                reader_before(name, number).read(more)


def reader_before(name: str, number: int) -> Handshake:
    turn, waits = side(name, initiator=True), side(name, initiator=False)
    for _ in range(number):
        waits.read(turn.write(b"payload"))
        turn, waits = waits, turn
    return waits


@settings(max_examples=200)
@given(st.binary(max_size=300), st.integers(0, 2))
def test_whatever_comes_in_is_read_or_broken(message: bytes, number: int) -> None:
    for name in (XXPSK0, KKPSK0):
        if number < len(PATTERNS[name]):
            with pytest.raises(Broken):
                reader_before(name, number).read(message)


@settings(max_examples=200)
@given(st.binary(max_size=300))
def test_whatever_comes_in_sealed_is_broken(message: bytes) -> None:
    _, there = shaken(KKPSK0)
    with pytest.raises(Broken):
        there.open(message)
