"""What an S3 API answers, or fails to answer, in the words of `contract.py` and a sentence for the operator.

The code of an answer decides; where nobody knows the code, the HTTP status does. A HEAD has a status alone.
"""

from __future__ import annotations

from typing import Any

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from models.bytestore.contract import Fault, StoreFault

KNOWN: dict[Fault, str] = {
    "credentials": """AccessDenied AllAccessDisabled InvalidAccessKeyId InvalidSecurity SignatureDoesNotMatch
        ExpiredToken InvalidToken NotSignedUp AccountProblem RequestTimeTooSkewed TokenRefreshRequired""",
    "misconfigured": """NoSuchBucket InvalidBucketName PermanentRedirect TemporaryRedirect
        AuthorizationHeaderMalformed IllegalLocationConstraintException""",
    "unavailable": """SlowDown ServiceUnavailable InternalError RequestTimeout Throttling ThrottlingException
        TooManyRequests Busy OperationAborted RequestLimitExceeded BandwidthLimitExceeded""",
}
CODES = {code: fault for fault, codes in KNOWN.items() for code in codes.split()}
ADVICE: dict[Fault, str] = {
    "credentials": "check the AWS_ access key, what its policy allows and this machine's clock",
    "misconfigured": "check the bucket in OBJECT_STORE_URL, AWS_REGION and AWS_ENDPOINT_URL",
    "unavailable": "it is out of reach or overloaded",
    "unknown": "nobody foresaw this answer",
}
ABSENT = {"NoSuchKey", "NoSuchVersion", "NoSuchUpload", "NotFound", "404"}
NO_SUCH_OPERATION = {"NotImplemented", "MethodNotAllowed", "501", "405", "400", "InvalidRequest"}

CREDENTIAL_ERRORS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.TokenRetrievalError,
    boto.SSOError,
)
SETTING_ERRORS = (
    boto.ProfileNotFound,
    boto.NoRegionError,
    boto.InvalidRegionError,
    boto.ParamValidationError,
    boto.ConfigParseError,
    ValueError,  # an AWS_ENDPOINT_URL that is no URL
)
NO_ANSWER = (boto.ConnectionError, boto.HTTPClientError, boto.IncompleteReadError, ResponseParserError)
ERRORS = (boto.ClientError, boto.BotoCoreError, ResponseParserError, ValueError)


def code_of(error: Exception) -> str:
    """The error code of an answer; the class name of what was no answer."""
    if isinstance(error, boto.ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def fault_of(error: Exception) -> Fault:
    """Which of the four words anything in ERRORS is."""
    if isinstance(error, boto.ClientError):
        return fault_of_code(
            code_of(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        )
    if isinstance(error, CREDENTIAL_ERRORS):
        return "credentials"
    if isinstance(error, SETTING_ERRORS):
        return "misconfigured"
    if isinstance(error, NO_ANSWER):
        return "unavailable"
    return "unknown"


def fault_of_code(code: str, status: int = 0) -> Fault:
    """Which of the four words the code of an answer is; `status` decides when the code says nothing."""
    if code in CODES:
        return CODES[code]
    status = int(code) if code.isascii() and code.isdigit() else status
    if status in {401, 403}:
        return "credentials"
    if status in {301, 307, 308, 404}:
        return "misconfigured"
    if status == 429 or status >= 500:
        return "unavailable"
    return "unknown"


def is_answer(error: Exception) -> bool:
    """True when the store did answer: then the next request is worth trying."""
    return isinstance(error, boto.ClientError)


def is_absent(error: Exception) -> bool:
    """True when the answer says that the object, version or upload is not there, or is a delete marker."""
    return isinstance(error, boto.ClientError) and code_of(error) in ABSENT


def is_no_such_operation(error: Exception) -> bool:
    """True when this store, one of the many that speak a part of the S3 API, has no such operation."""
    return isinstance(error, boto.ClientError) and code_of(error) in NO_SUCH_OPERATION


def store_fault(where: str, error: Any) -> StoreFault:
    """The fault to raise for `error` in the store that is known as `where`."""
    fault = fault_of(error)
    return StoreFault(fault, f"The object store {where} cannot be used ({code_of(error)}); {ADVICE[fault]}.")
